"""Erasure: set one or more attention weights to zero until the model's decision flips."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict
from functools import partial
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attlas.errors import UsageError
from attlas.keeping import kept
from attlas.mathematics.intervals import clopper_pearson
from attlas.models.asking.question import Question
from attlas.results.support import plots
from attlas.shapes import TextValues
from attlas.trials.rewriting.erasing import (
    DIVERGENCE_GAP,
    LARGEST_TURNS,
    NAMES,
    ORDERS,
    RANDOM_TURNS,
    REMOVED,
    TURNABLE,
    WEIGHT_GAP,
    Erasing,
    ErasurePlan,
)
from attlas.trials.support.findings import estimate_mean, estimates_as_json, in_words
from attlas.trials.support.outputs import chooses_differently, jensen_shannon
from attlas.trials.support.scope import Scope
from attlas.trials.support.trial import TrialOutcome, seed_for, trial

Figures = Mapping[str, TextValues]
PLACES = np.linspace(0, 1, 21)


@trial(
    cost="expensive",
    paper="Serrano & Smith 2019, arXiv:1906.03731",
    reading="Does the decision depend on the largest weights more than on others?",
    does_not_show=(
        "That the tokens do not matter: the information of a token has often reached other "
        "positions, or the one that is read, before the layer whose weights are erased."
    ),
    needs=("attention", "gradients", "branches"),
    fills=True,
)
def erasure(
    questions: Sequence[Question],
    scope: Scope = Scope(),  # noqa: B008
    *,
    seed: int = 0,
    draws: int = 5,
    steps: int = 50,
) -> TrialOutcome:
    """Compare erasing the largest weight with a random one; then erase more until the answer flips.

    A weight is that of a token within the scope, in all its heads and rows; the erased weight goes
    to the others in proportion. Tokens are erased in four orders: by attention, by the signed
    gradient of the target's probability on the weights, by gradient × attention, and at random,
    `draws` times. More than `steps` weights are erased in that many even steps. The text itself
    does not change.
    """
    if draws < 1 or steps < 1:
        raise UsageError(f"draws and steps must be at least 1, not {draws} and {steps}")
    if scope.kind == "layer" and scope.layer is None:
        raise UsageError("erasure works on one layer at a time: give its number with the scope")
    found: dict[int, NDArray[np.float64]] = {}
    for question in questions:
        ask = partial(_erase, question, scope, seed, draws, steps)
        found |= zip(question.order, kept(f"erasure {question.order}", ask), strict=True)
    texts = tuple(sorted(found))
    columns = np.stack([found[text] for text in texts], axis=1)
    figures = dict(zip(NAMES, columns, strict=True))
    estimates, table = estimates_as_json(figures), flip_table(figures)
    return TrialOutcome(
        figures,
        texts,
        sentence_of(figures),
        plots=plots_of(figures, table),
        notes=(f"scope: {scope}",),
        details={"scope": str(scope), "estimates": estimates, "flips": table},
    )


def _erase(
    question: Question, scope: Scope, seed: int, draws: int, steps: int
) -> list[list[float]]:
    """The figures of each text of a batch, in the order of NAMES."""
    erasing = Erasing(question, scope)
    weighed = erasing.weigh()
    erasable = weighed.erasable.cpu().numpy()
    scores = [each.cpu().numpy() for each in (weighed.weight, weighed.gradient, weighed.product)]
    plans = [
        ErasurePlan.of(
            erasable[row],
            [each[row] for each in scores],
            np.random.default_rng(seed_for(seed, number, "erasure")),
            draws,
        )
        for row, number in enumerate(question.order)
    ]
    most = min(steps, int(erasable.sum(axis=1).max()))
    sets = np.stack([plan.sets(most) for plan in plans], axis=1)
    divergence, turned = _changes(erasing, torch.from_numpy(sets))
    rows = [
        plan.figures(divergence[:, row], turned[:, row], most) for row, plan in enumerate(plans)
    ]
    return [[figures[name] for name in NAMES] for figures in rows]


def _changes(erasing: Erasing, sets: Tensor) -> tuple[NDArray[np.float64], NDArray[np.bool_]]:
    """How far each set moves the answer, and whether it flips the decision: `[set, batch]`.

    The first set is empty, and the others are compared with it.
    """
    clean, divergence, turned = None, [], []
    for answers in erasing.answers(sets.to(erasing.question.subject.device)):
        clean = answers[0] if clean is None else clean
        divergence.append(jensen_shannon(clean.expand_as(answers), answers))
        turned.append(chooses_differently(clean.expand_as(answers), answers))
    return torch.cat(divergence).cpu().numpy(), torch.cat(turned).cpu().numpy()


def flip_table(figures: Figures) -> dict[str, Any]:
    """How many decisions the largest weight flips, and a random one, with shares.

    Only texts with two or more weights count.
    """
    known = ~np.isnan(figures[LARGEST_TURNS])
    largest, other = (figures[name][known] > 0 for name in (LARGEST_TURNS, RANDOM_TURNS))
    count = int(known.sum())
    cells = {
        "both": largest & other,
        "largest_only": largest & ~other,
        "random_only": ~largest & other,
        "neither": ~largest & ~other,
    }
    found: dict[str, Any] = {name: int(marks.sum()) for name, marks in cells.items()}
    if count:
        found["largest"] = asdict(clopper_pearson(int(largest.sum()), count))
        found["random"] = asdict(clopper_pearson(int(other.sum()), count))
    return found | {"texts": count}


def sentence_of(figures: Figures) -> str:
    """The outcome in words."""
    table = flip_table(figures)
    if not table["texts"]:
        return "No text has two weights that can be erased."
    said = (
        f"Erasing the largest weight flipped {_share(table['largest'])} of the decisions, and a "
        f"random one {_share(table['random'])}."
    )
    turnable = figures[TURNABLE] > 0
    if not turnable.any():
        return f"{said} No set of weights flipped any."
    shares = [
        f"{order} {in_words(estimate_mean(figures[REMOVED[order]][turnable]))}" for order in ORDERS
    ]
    return (
        f"{said} In {int(turnable.sum())} of {len(turnable)} texts some set flipped it, after this "
        f"share of the weights, by order: {', '.join(shares)}."
    )


def _share(estimate: Mapping[str, float]) -> str:
    return f"{estimate['mean']:.1%} ({estimate['low']:.1%} to {estimate['high']:.1%})"


def plots_of(figures: Figures, table: Mapping[str, Any]) -> tuple[plots.Plot, ...]:
    """ΔJS against Δα, the table of flips, and the share of flips as more is erased."""
    return (
        plots.scatter(
            "The largest weight against a random one",
            {"texts": (figures[WEIGHT_GAP], figures[DIVERGENCE_GAP])},
            x_label="difference of the two weights",
            y_label="difference of the effects of erasing them (Jensen–Shannon)",
            reading="A point is a text. Below zero, the random weight had more effect.",
        ),
        plots.table(
            "Does erasing one weight flip the decision?",
            ["", "the random one does", "the random one does not"],
            [
                ["the largest does", table["both"], table["largest_only"]],
                ["the largest does not", table["random_only"], table["neither"]],
            ],
            reading="Numbers of texts; those at the top right speak for the largest weight.",
        ),
        plots.curve(
            "Decisions that flip as weights are erased",
            PLACES,
            {order: _turned(figures, order) for order in ORDERS},
            x_label="share of the weights erased",
            y_label="share of texts",
            reading="The sooner a line rises, the better its order finds what the decision "
            "depends on. All lines end at the share of texts that some set flips: a text that an "
            "order does not flip counts at the end.",
        ),
    )


def _turned(figures: Figures, order: str) -> list[float]:
    """The share of texts that an order has flipped at each place."""
    known = ~np.isnan(figures[TURNABLE])
    removed = np.where(figures[TURNABLE] > 0, figures[REMOVED[order]], np.inf)[known]
    return [float((removed <= place + 1e-9).mean()) if known.any() else np.nan for place in PLACES]
