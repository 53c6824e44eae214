"""What erasures of weights come to over texts: the table of flips, plots and a sentence."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from attlas.mathematics.intervals import clopper_pearson
from attlas.results.support import plots
from attlas.shapes import TextValues
from attlas.trials.rewriting.erasure_plan import (
    DIVERGENCE_GAP,
    LARGEST_TURNS,
    ORDERS,
    RANDOM_TURNS,
    REMOVED,
    TURNABLE,
    WEIGHT_GAP,
)
from attlas.trials.support.findings import mean_of, written

Figures = Mapping[str, TextValues]
PLACES = np.linspace(0, 1, 21)


def flip_table(figures: Figures) -> dict[str, Any]:
    """How many texts the largest weight turns, by whether the random one does, with shares.

    Of texts with two weights or more.
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
    """What was found, in words."""
    table = flip_table(figures)
    if not table["texts"]:
        return "No text has two weights that could be erased."
    said = (
        f"Erasing the largest weight turned {_share(table['largest'])} of the decisions, a random "
        f"one {_share(table['random'])}."
    )
    turnable = figures[TURNABLE] > 0
    if not turnable.any():
        return f"{said} No set of weights that was tried turned any."
    parts = [f"{order} {written(mean_of(figures[REMOVED[order]][turnable]))}" for order in ORDERS]
    return (
        f"{said} In {int(turnable.sum())} of {len(turnable)} texts some set turned it; the share "
        f"of weights that had to go there, by order: {', '.join(parts)}."
    )


def _share(estimate: Mapping[str, float]) -> str:
    return f"{estimate['mean']:.1%} ({estimate['low']:.1%} to {estimate['high']:.1%})"


def plots_of(figures: Figures, table: Mapping[str, Any]) -> tuple[plots.Plot, ...]:
    """ΔJS against Δα, the table of flips, and how many decisions turn as more is erased."""
    return (
        plots.scatter(
            "The largest weight against a random one",
            {"texts": (figures[WEIGHT_GAP], figures[DIVERGENCE_GAP])},
            x_label="difference of the two weights",
            y_label="difference of what erasing each does (Jensen–Shannon)",
            reading="A point is a text; below zero, the random weight did more than the largest.",
        ),
        plots.table(
            "Does erasing one weight turn the decision?",
            ["", "the random one does", "it does not"],
            [
                ["the largest does", table["both"], table["largest_only"]],
                ["it does not", table["random_only"], table["neither"]],
            ],
            reading="Texts in each case; those at the top right speak for the largest weight.",
        ),
        plots.curve(
            "Decisions that have turned as weights are erased",
            PLACES,
            {order: _turned(figures, order) for order in ORDERS},
            x_label="share of the weights erased",
            y_label="share of texts",
            reading="The sooner a line rises, the better its order finds what the decision hangs "
            "on. All end at the share of texts that some set turns: one that an order does not "
            "turn counts at the end.",
        ),
    )


def _turned(figures: Figures, order: str) -> list[float]:
    """At each place, the share of texts that an order has turned by then."""
    known = ~np.isnan(figures[TURNABLE])
    removed = np.where(figures[TURNABLE] > 0, figures[REMOVED[order]], np.inf)[known]
    return [float((removed <= place + 1e-9).mean()) if known.any() else np.nan for place in PLACES]
