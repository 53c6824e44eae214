"""Consistent adversary: can one model attend otherwise on every text and give the same answers?"""

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
from attlas.trials.support.findings import estimates_of, mean_of, written
from attlas.trials.support.halves import among, halves, note_on, numbers_of
from attlas.trials.support.scope import Scope
from attlas.trials.support.trial import TrialOutcome, seed_for, trial

LAMBDAS = (0.01, 0.03, 0.1, 0.3, 1.0)
TOLERANCES = (0.01, 0.05, 0.1, 0.2)
ALLOWED = 0.05  # mean change of the output, on the texts trained on, of the adversary that counts
START = 0.5  # of the spread of each weight: from the model's own there is no way downhill
CHANGE, DISTANCE, SHARE = "change of the output", "JSD of the attention", "share of the largest JSD"
AGREES, ALONE = "agreement", "ε-max JSD of a search on each text at ε = 0.05"


@dataclass(frozen=True, eq=False)
class TrainedAdversary:
    """An adversary by its λ: what it does to each text that is judged, and to those it knows."""

    weight: float
    change: TextValues
    distance: TextValues
    agrees: TextValues
    trained_change: float
    trained_distance: float


@trial(
    cost="expensive",
    paper="arXiv:1908.04626",
    reading="Can a copy of the model, its query and key weights alone trained to it, attend "
    "otherwise on texts it has not seen and give the same answers?",
    does_not_show="That the model's own attention is unfaithful: it says that another model with "
    "the same answers could attend otherwise, not what this one does with its attention.",
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
    steps: int = 50,
    training: Sequence[Example] = (),
    seeds: int = 3,
) -> TrialOutcome:
    """Train query and key weights on half of the texts, by TVD − λ · JSD, and judge on the others.

    λ grows, and each adversary goes on from the one before. `steps` are those of the search on each
    text that the curve is held to. With `training` examples, the model's top is also trained again
    with `seeds` new draws of those weights, and with uniform attention, for comparison.
    """
    if not lambdas or min(lambdas) < 0:
        raise UsageError(f"lambdas are one or more numbers that are not negative, not {lambdas}")
    read_sites(questions[0], scope)
    kept, judged = halves(questions)
    copy = attention_copy(questions[0], scope.sites(questions[0].subject))
    known, asked = ([make_case(copy, each, scope) for each in part] for part in (kept, judged))
    adversaries = _adversaries(
        copy, known, asked, sorted(lambdas), TrainingPace(epochs, rate), seed
    )
    best = choose(adversaries)
    alone = _alone(judged, scope, steps, seed)
    largest = np.concatenate([_array(largest_divergence(each.given)) for each in asked])
    figures = {
        DISTANCE: best.distance,
        SHARE: best.distance / largest,
        CHANGE: best.change,
        AGREES: best.agrees,
        ALONE: alone[1][TOLERANCES.index(0.05)],
    }
    most = among(largest, judged, questions)
    again = retrain(copy, scope, training, judged, seeds, TrainingPace(epochs, rate), seed)
    return TrialOutcome(
        figures={
            name: among(each, judged, questions)
            for name, each in {**figures, **again.figures}.items()
        },
        texts=numbers_of(questions),
        sentence=_sentence(figures, best, again),
        ceilings={DISTANCE: most, ALONE: most, SHARE: 1.0, AGREES: 1.0},
        plots=(_curve(adversaries, alone), *again.plots),
        notes=(f"Scope: {scope}.", note_on(kept, judged)),
        details={
            "estimates": estimates_of(figures),
            "curve": [_record(adversary) for adversary in adversaries],
            "search on each text": [
                {"ε": e, "change": float(np.nanmean(c)), "JSD": float(np.nanmean(d))}
                for e, c, d in zip(TOLERANCES, alone[0], alone[1], strict=True)
            ],
            "λ": best.weight,
            "retrained": again.details,
        },
    )


def _adversaries(
    copy: AttentionCopy,
    kept: Sequence[TrainingCase],
    judged: Sequence[TrainingCase],
    lambdas: Sequence[float],
    pace: TrainingPace,
    seed: int,
) -> list[TrainedAdversary]:
    """An adversary for each λ, from a little noise on."""
    random = torch.Generator().manual_seed(seed_for(seed, 0, "consistent_adversary"))
    weights = copy.freeze_all_but_attention()
    for each in copy.weights:
        each.shake(START, random)
    adversaries = []
    for weight in lambdas:

        def loss(case: TrainingCase, weight: float = weight) -> torch.Tensor:
            passed = case.run()
            return case.change(passed) - weight * case.distance(passed)

        train(copy, weights, kept, loss, pace)
        (known, far, _), (change, distance, agrees) = (_measure(part) for part in (kept, judged))
        trained = (float(np.nanmean(known)), float(np.nanmean(far)))
        adversaries.append(TrainedAdversary(weight, change, distance, agrees, *trained))
    for each in copy.weights:
        each.reset()
    return adversaries


@torch.no_grad()
def _measure(cases: Sequence[TrainingCase]) -> tuple[TextValues, TextValues, TextValues]:
    """Of each text, how far answer and attention are off, and whether the choice is the same."""
    passed = [(case, case.run()) for case in cases]
    change, distance, agrees = (
        np.concatenate([_array(measured(case, one)) for case, one in passed])
        for measured in (TrainingCase.change, TrainingCase.distance, TrainingCase.agrees)
    )
    return change, distance, agrees


def choose(adversaries: Sequence[TrainedAdversary]) -> TrainedAdversary:
    """The farthest adversary that keeps the answers to the texts it was trained on, on average.

    Where none does, the one that keeps them best.
    """
    within = [adversary for adversary in adversaries if adversary.trained_change <= ALLOWED]
    if within:
        return max(within, key=lambda adversary: adversary.trained_distance)
    return min(adversaries, key=lambda adversary: adversary.trained_change)


def _alone(
    judged: Sequence[Question], scope: Scope, steps: int, seed: int
) -> tuple[ToleranceTexts, ToleranceTexts]:
    """What a search on each text by itself finds: changes and distances, `[tolerance, text]`."""
    plan = SearchPlan(TOLERANCES, candidates=2, steps=steps, rate=0.4)
    together = fill(judged)
    found = [Search(question, scope, plan).run(seed) for question in together]
    places = {text: place for place, text in enumerate(_order(together))}
    back = [places[text] for text in _order(judged)]
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


def _sentence(figures: Mapping[str, TextValues], best: TrainedAdversary, again: Retrained) -> str:
    said = (
        f"A copy with other query and key weights gives the same answer to "
        f"{np.nanmean(best.agrees):.0%} of {len(best.agrees)} texts, off by "
        f"{np.nanmean(best.change):.3f}, with attention {written(mean_of(best.distance))} from the "
        f"model's own (Jensen–Shannon; {np.nanmean(figures[SHARE]):.0%} of the farthest there is); "
        f"a search on each text by itself reaches {np.nanmean(figures[ALONE]):.2f} within 0.05."
    )
    return f"{said} {again.sentence}".strip()


def _curve(
    adversaries: Sequence[TrainedAdversary], alone: tuple[ToleranceTexts, ToleranceTexts]
) -> Mapping[str, Any]:
    ours = [
        (np.nanmean(adversary.change), np.nanmean(adversary.distance)) for adversary in adversaries
    ]
    changes, distances = (np.nanmean(each, axis=1) for each in alone)
    x, y = zip(*ours, strict=True)
    return plots.scatter(
        "What it costs to attend otherwise",
        {"one copy for all texts": (x, y), "a search on each text": (changes, distances)},
        x_label=CHANGE,
        y_label=DISTANCE,
        reading="A point is an adversary, the mean over texts; the higher at the left, the less "
        "the answers need this attention. The lower the copies are beside the searches, the more "
        "of what a search finds is of single texts, and no model's way to attend.",
    )
