"""Self-attention attribution: the gradient on attention, integrated while the attention is raised.

Hao, Dong, Wei and Xu, "Self-Attention Attribution", AAAI 2021.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from attlas.errors import UnknownNameError, UsageError
from attlas.methods.method import Scored, method
from attlas.models import variants
from attlas.models.branches import Branch, Branched
from attlas.models.holding import map_bytes
from attlas.models.question import Question
from attlas.quantities.token_rows import read_row, reading_kinds, readout_of, spread_over_tokens
from attlas.results import Site
from attlas.shapes import Attention, BatchScores

RULES = ("midpoint", "right")
QUERIES = ("readout", "all")
GRADIENT_BYTES = 2**30  # of gradients that are held at once


@method(
    family="V",
    signed=True,
    of="probability",
    paper="arXiv:2004.11207",
    maps="sites",
    reading="How much of the target's probability is owed to the attention paid to each token.",
    needs=("attention", "gradients", "branches"),
    cost="dear",
)
def attattr(
    question: Question, *, steps: int = 20, rule: str = "midpoint", queries: str = "readout"
) -> Scored:
    """Score each token by the attention paid to it times the integral of its gradient.

    The attention of one layer at a time is raised from nothing to what it is, in `steps` steps;
    `rule` says where the gradient is taken in each: at its midpoint, or at its right end as
    published. Scores sum over layers and heads, of the rows the prediction is read from, or of
    every row for `queries="all"`. In an encoder–decoder the encoder's own attention is in the maps,
    and in the scores for `queries="all"` alone.
    """
    factors = places(steps, rule)
    if queries not in QUERIES:
        raise UnknownNameError("queries", queries, QUERIES)
    sites = question.subject.sites
    read = reading_kinds(question.inputs, sites)
    readout = (question.readout() > 0).float()  # the gradient holds the share of each row already
    rows: list[tuple[str, Tensor]] = []
    maps: list[tuple[Site, Tensor]] = []
    errors = []
    for found in attributions(question, sites, factors):
        kind = found.site.kind
        errors.append(found.completeness_error)
        summed = found.weights.sum(dim=1)
        if queries == "all":
            rows.append((kind, summed.sum(dim=1)))
        elif kind in read:
            rows.append((kind, read_row(summed, readout_of(question.inputs, kind, readout))))
        if question.maps:
            maps.append((found.site, found.weights))
    worst = torch.stack(errors).amax(dim=0).tolist()
    return Scored(
        spread_over_tokens(question.inputs, rows),
        maps,
        (f"{rule} rule, {steps} steps",),
        tuple((f"completeness error, largest of a layer: {error:.2g}",) for error in worst),
    )


def places(steps: int, rule: str) -> list[float]:
    """Where on the way from nothing to all of the attention the gradient is taken."""
    if rule not in RULES:
        raise UnknownNameError("rule", rule, RULES)
    if steps < 1:
        raise UsageError(f"steps are at least 1, not {steps}")
    late = 0.5 if rule == "midpoint" else 1.0
    return [(step + late) / steps for step in range(steps)]


@dataclass(frozen=True, eq=False)
class Attribution:
    """What the attention at one site brings the target, and how far it is from adding up."""

    site: Site
    weights: Attention  # shaped as the attention is
    completeness_error: BatchScores


def attributions(
    question: Question, sites: Sequence[Site], factors: Sequence[float]
) -> Iterator[Attribution]:
    """The attribution of each of these sites, its attention raised to each of the factors."""
    whole = question.score("probability")
    without = question.branches(
        [Branch(site, variants.scaled([0.0])) for site in sites], "probability"
    )
    switched_off = {found.site.name: found.scores[0] for found in without}
    for group in _groups(question, sites, len(factors)):
        branches = [Branch(site, variants.scaled(factors)) for site in group]
        for found in question.branches(branches, "probability", gradients=True):
            weights = integrate(found, factors[-1])
            change = whole - switched_off[found.site.name]
            error = (weights.sum(dim=(1, 2, 3)) - change).abs()
            yield Attribution(found.site, weights, error)


def integrate(found: Branched, last: float) -> Attention:
    """The attention times the mean of its gradients on the way to it."""
    assert found.weights is not None and found.gradients is not None
    wide = torch.promote_types(found.weights.dtype, torch.float32)
    return found.weights[-1].to(wide) / last * found.gradients.to(wide).mean(dim=0)


def _groups(question: Question, sites: Sequence[Site], steps: int) -> Iterator[Sequence[Site]]:
    """Sites whose gradients can be held together; most of the work below them is then shared."""
    group: list[Site] = []
    held = 0
    for site in sites:
        size = steps * len(question) * map_bytes(question.inputs, [site])
        if group and held + size > GRADIENT_BYTES:
            yield group
            group, held = [], 0
        group.append(site)
        held += size
    yield group
