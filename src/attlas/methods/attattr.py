"""Self-attention attribution: how much of the target is owed to the attention paid to a token."""

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
from attlas.models.asking.reading import find_readout
from attlas.models.branching.attribution import Attribution, Quadrature, attributions
from attlas.results import Site

QUERIES = ("readout", "all")


@method(
    family="V",
    signed=True,
    of="probability",
    paper="arXiv:2004.11207",
    maps="sites",
    reading="How much of the target's probability is owed to the attention paid to each token.",
    needs=("attention", "gradients", "branches"),
    cost="expensive",
    fills=True,
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

    The attention of one layer at a time is raised from nothing to what it is, and the gradient is
    taken at midpoints of equal steps, three times as many until the error of the map is estimated
    below `tolerance`. With `steps` there are that many; `rule="right"` takes the gradient at their
    ends, as published. Scores sum over layers and heads, of the rows the prediction is read from,
    or of every row for `queries="all"`. In an encoder–decoder the encoder's own attention is in the
    maps, and in the scores for `queries="all"` alone. No more than `memory` gigabytes are held
    beside the model, or what is free: less of it takes more passes.
    """
    most = None if memory is None else max(1, int(memory * 2**30))
    quadrature = Quadrature(rule, steps, tolerance, most)
    if queries not in QUERIES:
        raise UnknownNameError("queries", queries, QUERIES)
    sites = question.subject.sites
    read = reading_kinds(question.inputs, sites)
    readout = (
        find_readout(question) > 0
    ).float()  # the gradient holds the share of each row already
    rows: list[tuple[str, Tensor]] = []
    maps: list[tuple[Site, Tensor]] = []
    found = []
    for each in attributions(question, sites, quadrature):
        kind, summed = each.site.kind, each.weights.sum(dim=1)
        if queries == "all":
            rows.append((kind, summed.sum(dim=1)))
        elif kind in read:
            rows.append((kind, read_row(summed, readout_of(question.inputs, kind, readout))))
        if question.maps:
            maps.append((each.site, each.weights))
        found.append(each)
    details = [_details(found, row) for row in range(len(question))]
    return Scored(
        spread_over_tokens(question.inputs, rows),
        maps,
        row_notes=[_notes(each, rule, tolerance if steps is None else None) for each in details],
        row_details=details,
    )


def _details(found: list[Attribution], row: int) -> dict[str, dict[str, float | int]]:
    """How well each site of a row is known."""
    return {
        each.site.name: {
            "completeness_error": float(each.completeness_error[row]),
            **(
                {}
                if torch.isnan(each.map_error[row])
                else {"map_error": float(each.map_error[row])}
            ),
            "steps": each.steps[row],
        }
        for each in found
    }


def _notes(
    details: dict[str, dict[str, float | int]], rule: str, tolerance: float | None
) -> tuple[str, ...]:
    """What a reader must know of how well the sites of one row are known."""
    steps = sorted({int(each["steps"]) for each in details.values()})
    shown = f"{steps[0]}" if len(steps) == 1 else f"{steps[0]} to {steps[-1]}"
    worst = max(each["completeness_error"] for each in details.values())
    notes = [f"{rule} rule, {shown} steps; largest completeness error of a site: {worst:.2g}"]
    rough = [n for n, each in details.items() if each.get("map_error", 0) > (tolerance or 1)]
    if rough:
        notes.append(f"the map is rougher than {tolerance:.0%} at {', '.join(rough)}")
    return tuple(notes)
