"""What a bag of words answers, in closed form, and measures asked with these answers."""

import numpy as np

from attlas.measures import MEASURES, Case
from attlas.removing.erasures import Outcomes


def answers(weights, ways):
    """Outcomes of a bag of these weights without each of some sets of its words.

    The weights speak for the class that is predicted of all of them; its logit is their sum, and
    the other class has the same below zero.
    """
    left = (~np.asarray(ways, dtype=bool)) @ np.asarray(weights, dtype=float)
    return Outcomes(log_probability=-np.log1p(np.exp(-2 * left)), chosen=left > 0)


def judge(name, weights, scores, seed=0, marks=None):
    """The figure of a measure for these scores on a bag of these weights."""
    truth = None if marks is None else np.array(marks, dtype=bool)
    case = Case(np.array(scores, dtype=float), seed, truth)
    measure = MEASURES[name]
    whole = answers(weights, np.zeros((1, len(case)), dtype=bool))
    ways = np.zeros((0, len(case)), dtype=bool) if measure.ways is None else measure.ways(case)
    return measure.value(case, whole, answers(weights, ways))


def given(name, probabilities, scores, chosen=None, seed=0):
    """The figure where the model's answers to the whole text and to each set are these."""
    known = np.array(probabilities, dtype=float)
    stays = np.ones(len(known), dtype=bool) if chosen is None else np.array(chosen, dtype=bool)
    both = (Outcomes(log_probability=np.log(known[part]), chosen=stays[part]) for part in _PARTS)
    return MEASURES[name].value(Case(np.array(scores, dtype=float), seed), *both)


_PARTS = (slice(0, 1), slice(1, None))
