"""The answers of a bag of words in closed form, and measures computed from them."""

from math import exp

import numpy as np

from attlas.measures import MEASURES, Case
from attlas.removing.erasures import Outcomes

BAG = [1.0, 0.5, -0.25]  # all together 1.25
WHOLE = 0.9241418  # probability(1.25)
CLOSE = {"abs": 1e-6}
LONG = (51, 60, 100, 137, 400)  # texts of these lengths are measured at shares of their tokens


def probability(logit):
    """The probability of a class with this logit, if the other class has the negative."""
    return 1 / (1 + exp(-2 * logit))


def answers(weights, ways):
    """Outcomes of a bag of these weights without each of some sets of its words.

    The weights speak for the predicted class. Its logit is their sum, and that of the other class
    is the negative sum.
    """
    left = (~np.asarray(ways, dtype=bool)) @ np.asarray(weights, dtype=float)
    return of_two_classes(1 / (1 + np.exp(-2 * left)), left > 0)


def of_two_classes(known, chosen):
    """Outcomes with these probabilities of one class; the other class has the rest."""
    return Outcomes(np.log(known), chosen, np.stack([known, 1 - known], axis=1))


def judge(name, weights, scores, seed=0, marks=None):
    """The figure of a measure for these scores on a bag of these weights."""
    truth = None if marks is None else np.array(marks, dtype=bool)
    case = Case(np.array(scores, dtype=float), seed, truth)
    measure = MEASURES[name]
    whole = answers(weights, np.zeros((1, len(case)), dtype=bool))
    ways = np.zeros((0, len(case)), dtype=bool) if measure.ways is None else measure.ways(case)
    return measure.value(case, whole, answers(weights, ways))


def given(name, probabilities, scores, chosen=None, seed=0):
    """The figure of a measure if these are the model's answers to the whole text and each set."""
    known = np.array(probabilities, dtype=float)
    stays = np.ones(len(known), dtype=bool) if chosen is None else np.array(chosen, dtype=bool)
    both = (of_two_classes(known[part], stays[part]) for part in _PARTS)
    return MEASURES[name].value(Case(np.array(scores, dtype=float), seed), *both)


_PARTS = (slice(0, 1), slice(1, None))


def of_marks(name, scores, marks, seed=0):
    """The figure of a measure that uses only what people marked."""
    return judge(name, np.ones(len(scores)), scores, seed, marks)


def eraser(count, answer):
    """Weights and scores of a long text, and ERASER's area over the perturbation curve.

    The area is the mean fall of the probability over thresholds. `answer` takes the weights of the
    whole text and of the highest tokens, and returns the logit.
    """
    random = np.random.default_rng(count)
    weights = random.normal(0.1, 0.3, count)
    scores = random.normal(size=count)
    weights = weights if weights.sum() > 0 else -weights
    ranked = np.argsort(-scores)
    tops = [ranked[: -(-count * percent // 100)] for percent in (1, 5, 10, 20, 50)]
    whole = probability(weights.sum())
    falls = [whole - probability(answer(weights, weights[top])) for top in tops]
    return weights, scores, sum(falls) / len(falls)
