"""Self-attention attribution: how much the attention to a token adds to the target."""

import math
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor

from attlas.errors import UnknownNameError
from attlas.methods.support.method import Scored, method
from attlas.methods.support.token_rows import (
    read_row,
    reading_kinds,
    readout_of,
    spread_over_tokens,
)
from attlas.models.asking.question import Question
from attlas.models.branching.attribution import Attribution, attributions
from attlas.models.branching.integrals import Quadrature

QUERIES = ("readout", "all")
USUAL_STEPS = 8  # of the integral, that the default tolerance takes
MOST_STEPS = 15 + 36 + 108  # where it meets no tolerance


def weigh(question: Question, options: Mapping[str, Any]) -> float:
    """About how many passes over a text it takes."""
    steps = options["steps"] or USUAL_STEPS
    return float(1.5 * steps * len(question.subject.sites))  # on average, half of the blocks


@method(
    family="V",
    signed=True,
    of="probability",
    paper="arXiv:2004.11207",
    maps="sites",
    reading="How much the attention to each token adds to the target's probability.",
    needs=("attention", "gradients", "branches"),
    cost="expensive",
    fills=True,
    learns=True,
    weighs=weigh,
    hardest=lambda options: {"steps": options["steps"] or MOST_STEPS},
)
def attattr(
    question: Question,
    *,
    tolerance: float = 0.01,
    steps: int | None = None,
    rule: str = "midpoint",
    queries: str = "readout",
    memory: float | None = None,
) -> Scored:
    """Score each token by the attention paid to it times the integral of its gradient.

    The attention of one layer at a time is scaled from zero to its real value, and the gradient is
    taken at seven points of the way (Gauss–Kronrod). Where the estimated error of the map is not
    below `tolerance`, it is taken at 15, then at 36 midpoints of equal steps, then 108. `steps`
    fixes the number of midpoints. `rule="right"` takes the ends of the steps, as published. Scores
    are summed over layers and heads, from the rows that the prediction is read from, or from every
    row with `queries="all"`. In an encoder–decoder the
    encoder's own attention is in the maps, but in the scores only with `queries="all"`. `memory`
    limits the gigabytes used beside the model, by default to what is free; less memory takes more
    passes.
    """
    most = None if memory is None else max(1, int(memory * 2**30))
    quadrature = Quadrature(rule, steps, tolerance, most)
    if queries not in QUERIES:
        raise UnknownNameError("queries", queries, QUERIES)
    sites = question.subject.sites
    read = reading_kinds(question.inputs, sites)
    totals: dict[str, Tensor] = {}  # of each kind of site, `[batch, query, key]`
    attributed = []
    for each in attributions(question, sites, quadrature):
        kind, summed = each.site.kind, each.weights.sum(dim=1)
        if queries == "all" or kind in read:
            totals[kind] = totals[kind].add_(summed) if kind in totals else summed
        attributed.append(each)
    if queries == "all":
        rows = [(kind, total.sum(dim=1)) for kind, total in totals.items()]
    else:
        shown = (attributed[0].readout > 0).float()  # the gradient has the share of each row
        rows = [
            (kind, read_row(total, readout_of(question.inputs, kind, shown)))
            for kind, total in totals.items()
        ]
    maps = [(each.site, each.weights) for each in attributed] if question.maps else []
    details = _details(attributed, len(question))
    return Scored(
        spread_over_tokens(question.inputs, rows),
        maps,
        row_notes=[_notes(each, rule, tolerance if steps is None else None) for each in details],
        row_details=details,
        shows="attribution of attention",
    )


def _details(attributed: list[Attribution], rows: int) -> list[dict[str, dict[str, float | int]]]:
    """The errors of each row at each site."""
    # At once: each number by itself would be waited for.
    incomplete = torch.stack([each.completeness_error for each in attributed]).tolist()
    rough = torch.stack([each.map_error for each in attributed]).tolist()
    return [
        {
            each.site.name: {
                "completeness_error": incomplete[place][row],
                **({} if math.isnan(rough[place][row]) else {"map_error": rough[place][row]}),
                "steps": each.steps[row],
            }
            for place, each in enumerate(attributed)
        }
        for row in range(rows)
    ]


def _notes(
    details: dict[str, dict[str, float | int]], rule: str, tolerance: float | None
) -> tuple[str, ...]:
    """What readers must know about the errors of one row."""
    steps = sorted({int(each["steps"]) for each in details.values()})
    shown = f"{steps[0]}" if len(steps) == 1 else f"{steps[0]} to {steps[-1]}"
    worst = max(each["completeness_error"] for each in details.values())
    how = f"{shown} points" if tolerance else f"{rule} rule, {shown} steps"
    notes = [f"{how}; largest completeness error of a site: {worst:.2g}"]
    rough = [n for n, each in details.items() if each.get("map_error", 0) > (tolerance or 1)]
    if rough:
        notes.append(f"the error of the map is above {tolerance:.0%} at {', '.join(rough)}")
    return tuple(notes)
