"""Consistent adversary: can one model attend differently on every text with the same answers?"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch

from attlas.data.example import Example
from attlas.errors import UsageError
from attlas.models.asking.filling import fill
from attlas.models.asking.question import Question
from attlas.models.intervening.attention_copy import AttentionCopy, attention_copy
from attlas.results.support import plots
from attlas.shapes import TextValues, ToleranceTexts
from attlas.trials.searching.leeway import largest_divergence, read_sites
from attlas.trials.searching.retraining import Retrained, retrain
from attlas.trials.searching.search import Search, SearchPlan
from attlas.trials.searching.trained_copy import TrainingCase, TrainingPace, make_case, train
from attlas.trials.support.findings import estimate_mean, estimates_as_json, in_words
from attlas.trials.support.scope import Scope
from attlas.trials.support.text_halves import over_all_texts, split_note, split_texts, text_numbers
from attlas.trials.support.trial import TrialOutcome, seed_for, trial

LAMBDAS = (0.01, 0.03, 0.1, 0.3, 1.0)
TOLERANCES = (0.01, 0.05, 0.1, 0.2)
ALLOWED = 0.05  # mean change of the output on the training texts
START = (
    0.5  # noise, as a share of each weight's spread: at the model's own weights the slope is zero
)
CHANGE, DISTANCE, SHARE = "change of the output", "JSD of the attention", "share of the largest JSD"
AGREES, ALONE = "agreement", "ε-max JSD of a search on each text at ε = 0.05"


@dataclass(frozen=True, eq=False)
class TrainedAdversary:
    """An adversary and its λ: its effect on each tested text, and its mean on training texts."""

    weight: float  # λ
    change: TextValues
    distance: TextValues
    agrees: TextValues
    trained_change: float
    trained_distance: float


@trial(
    cost="expensive",
    paper="arXiv:1908.04626",
    reading="Can a copy of the model, in which only query and key weights are trained, attend "
    "differently on texts it has not seen and give the same answers?",
    does_not_show="That the model's own attention is unfaithful: another model with the same "
    "answers could attend differently, which does not say what this one does with its attention.",
    needs=("attention", "gradients", "branches"),
)
def consistent_adversary(
    questions: Sequence[Question],
    scope: Scope = Scope(),  # noqa: B008
    *,
    seed: int = 0,
    lambdas: Sequence[float] = LAMBDAS,
    epochs: int = 10,
    rate: float = 0.001,
    steps: int = 30,
    training: Sequence[Example] = (),
    seeds: int = 3,
) -> TrialOutcome:
    """Train query and key weights on half of the texts, by TVD − λ · JSD, and test on the others.

    λ grows, and each adversary starts from the one before. `steps` are those of the search for each
    text that the curve is compared with. With `training` examples, the upper part of the model is
    also retrained from `seeds` new draws of those weights, and with uniform attention.
    """
    if not lambdas or min(lambdas) < 0:
        raise UsageError(f"lambdas must be one or more numbers of at least 0, not {lambdas}")
    read_sites(questions[0], scope)
    train_texts, tested = split_texts(questions)
    copy = attention_copy(questions[0], scope.sites(questions[0].subject))
    known, asked = (
        [make_case(copy, each, scope) for each in half] for half in (train_texts, tested)
    )
    adversaries = _adversaries(
        copy, known, asked, sorted(lambdas), TrainingPace(epochs, rate), seed
    )
    best = choose(adversaries)
    alone = _search_each(tested, scope, steps, seed)
    largest = np.concatenate([_array(largest_divergence(each.leeways)) for each in asked])
    figures = {
        DISTANCE: best.distance,
        SHARE: best.distance / largest,
        CHANGE: best.change,
        AGREES: best.agrees,
        ALONE: alone[1][TOLERANCES.index(0.05)],
    }
    most = over_all_texts(largest, tested, questions)
    retrained = retrain(copy, scope, training, tested, seeds, TrainingPace(epochs, rate), seed)
    return TrialOutcome(
        figures={
            name: over_all_texts(each, tested, questions)
            for name, each in {**figures, **retrained.figures}.items()
        },
        texts=text_numbers(questions),
        sentence=_sentence(figures, best, retrained),
        ceilings={DISTANCE: most, ALONE: most, SHARE: 1.0, AGREES: 1.0},
        plots=(_curve(adversaries, alone), *retrained.plots),
        notes=(f"Scope: {scope}.", split_note(train_texts, tested)),
        details={
            "estimates": estimates_as_json(figures),
            "curve": [_record(adversary) for adversary in adversaries],
            "search on each text": [
                {"ε": e, "change": float(np.nanmean(c)), "JSD": float(np.nanmean(d))}
                for e, c, d in zip(TOLERANCES, alone[0], alone[1], strict=True)
            ],
            "λ": best.weight,
            "retrained": retrained.details,
        },
    )


def _adversaries(
    copy: AttentionCopy,
    known: Sequence[TrainingCase],
    tested: Sequence[TrainingCase],
    lambdas: Sequence[float],
    pace: TrainingPace,
    seed: int,
) -> list[TrainedAdversary]:
    """An adversary for each λ; the first starts from the model's weights with some noise."""
    random = torch.Generator().manual_seed(seed_for(seed, 0, "consistent_adversary"))
    weights = copy.freeze_all_but_attention()
    for each in copy.weights:
        each.shake(START, random)
    adversaries = []
    for weight in lambdas:

        def loss(case: TrainingCase, weight: float = weight) -> torch.Tensor:
            passed = case.run()
            return case.change(passed) - weight * case.distance(passed)

        train(copy, weights, known, loss, pace)
        (moved, far, _), (change, distance, agrees) = (_measure(half) for half in (known, tested))
        trained = (float(np.nanmean(moved)), float(np.nanmean(far)))
        adversaries.append(TrainedAdversary(weight, change, distance, agrees, *trained))
    for each in copy.weights:
        each.reset()
    return adversaries


@torch.no_grad()
def _measure(cases: Sequence[TrainingCase]) -> tuple[TextValues, TextValues, TextValues]:
    """For each text: the change of the answer, the distance of the attention, the same choice."""
    passed = [(case, case.run()) for case in cases]
    change, distance, agrees = (
        np.concatenate([_array(measured(case, one)) for case, one in passed])
        for measured in (TrainingCase.change, TrainingCase.distance, TrainingCase.agrees)
    )
    return change, distance, agrees


def choose(adversaries: Sequence[TrainedAdversary]) -> TrainedAdversary:
    """The farthest adversary that keeps, on average, the answers to its training texts.

    If none does, the one that keeps them best.
    """
    within = [adversary for adversary in adversaries if adversary.trained_change <= ALLOWED]
    if within:
        return max(within, key=lambda adversary: adversary.trained_distance)
    return min(adversaries, key=lambda adversary: adversary.trained_change)


def _search_each(
    tested: Sequence[Question], scope: Scope, steps: int, seed: int
) -> tuple[ToleranceTexts, ToleranceTexts]:
    """A search for each text by itself: changes and distances, `[tolerance, text]`."""
    plan = SearchPlan(TOLERANCES, candidates=2, steps=steps, rounds=2 * steps)
    together = fill(tested)
    found = [Search(question, scope, plan).run(seed) for question in together]
    places = {text: place for place, text in enumerate(_order(together))}
    back = [places[text] for text in _order(tested)]
    changes = torch.cat([each.change for each in found], dim=1)
    distances = torch.cat([each.distance for each in found], dim=1)
    return _array(changes)[:, back], _array(distances)[:, back]


def _order(questions: Sequence[Question]) -> list[int]:
    return [text for question in questions for text in question.order]


def _array(values: torch.Tensor) -> Any:
    return values.detach().double().cpu().numpy()


def _record(adversary: TrainedAdversary) -> dict[str, float]:
    return {
        "λ": adversary.weight,
        "change": float(np.nanmean(adversary.change)),
        "JSD": float(np.nanmean(adversary.distance)),
        "change, trained on": adversary.trained_change,
        "JSD, trained on": adversary.trained_distance,
    }


def _sentence(
    figures: Mapping[str, TextValues], best: TrainedAdversary, retrained: Retrained
) -> str:
    said = (
        f"A copy with other query and key weights gives the same answer to "
        f"{np.nanmean(best.agrees):.0%} of {len(best.agrees)} texts, with a mean change of "
        f"{np.nanmean(best.change):.3f}. Its attention is "
        f"{in_words(estimate_mean(best.distance))} from the model's own (Jensen–Shannon; "
        f"{np.nanmean(figures[SHARE]):.0%} of the largest possible distance); a search for each "
        f"text by itself reaches {np.nanmean(figures[ALONE]):.2f} within 0.05."
    )
    return f"{said} {retrained.sentence}".strip()


def _curve(
    adversaries: Sequence[TrainedAdversary], alone: tuple[ToleranceTexts, ToleranceTexts]
) -> Mapping[str, Any]:
    ours = [
        (np.nanmean(adversary.change), np.nanmean(adversary.distance)) for adversary in adversaries
    ]
    changes, distances = (np.nanmean(each, axis=1) for each in alone)
    x, y = zip(*ours, strict=True)
    return plots.scatter(
        "What it costs to attend differently",
        {"one copy for all texts": (x, y), "a search on each text": (changes, distances)},
        x_label=CHANGE,
        y_label=DISTANCE,
        reading="A point is an adversary, a mean over texts. The higher the points at the left, "
        "the less the answers need this attention. If the copies lie below the searches, what a "
        "search finds for single texts is not something that one model does on all of them.",
    )
