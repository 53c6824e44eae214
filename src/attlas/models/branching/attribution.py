"""Self-attention attribution: the gradient on attention, integrated from no attention to all.

Hao, Dong, Wei and Xu, "Self-Attention Attribution", AAAI 2021.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property

import torch
from torch import Tensor

from attlas.errors import ModelError
from attlas.models.asking.map_selection import map_bytes
from attlas.models.asking.question import Question
from attlas.models.asking.reading import (
    find_readout,
    learn_targets,
    look_recorded,
    readout_beside,
)
from attlas.models.branching import variants
from attlas.models.branching.branch_memory import spare_bytes
from attlas.models.branching.branches import Branch, Branched, run_branches
from attlas.models.branching.integrals import Points, Quadrature, alike, totals
from attlas.models.tap.on_patches import effects_on_patches
from attlas.results import Site
from attlas.shapes import Attention, BatchScores, QueryWeights

MAPS_SHARE = 1 / 8  # of the memory, for maps
MAPS_HELD = 8  # of each site: its weights, sums of gradients, and what is made of them


@dataclass(frozen=True, eq=False)
class Attribution:
    """The attribution of the attention at one site, `[batch, head, query, key]`.

    `steps` is the number of points of each row. For errors and readout a device is waited for. All
    attributions must be taken: whether the output is finite is looked at behind the last.
    """

    site: Site
    weights: Attention
    steps: tuple[int, ...]
    place: int  # of its errors
    told: "_Afterwards"

    @property
    def completeness_error(self) -> BatchScores:
        """How far the attributions of each row are from summing to what the attention is worth."""
        return self.told.errors[0, self.place]

    @property
    def map_error(self) -> BatchScores:
        """The estimated error of each row's map, as a share of it; NaN if unknown."""
        return self.told.errors[1, self.place]

    @property
    def readout(self) -> QueryWeights:
        """The positions of the last stream that the target is read from, as weights."""
        return self.told.readout


def attributions(
    question: Question, sites: Sequence[Site], quadrature: Quadrature
) -> Iterator[Attribution]:
    """The attribution of the attention at each of these sites; groups of sites run together."""
    if not question.is_of_best:
        look_recorded(question)
    first, *more = quadrature.rounds
    for group in _groups(question, sites, quadrature.memory):
        found = list(_raise(question, group, first, quadrature.memory, with_nothing=True))
        running = _begin(found, first)
        if more:
            learn_targets(question, found[0].output)
            _refine(question, running, more, quadrature)
        weights = [each.integral() for each in running]
        missed = (totals(weights) - torch.stack([each.worth for each in running])).abs()
        rough = torch.stack([each.error for each in running])
        told = _Afterwards(question, torch.stack([missed, rough]), found[0].above)
        for place, (each, own) in enumerate(zip(running, weights, strict=True)):
            placed = effects_on_patches(own, question.subject.stages(question.inputs))
            yield Attribution(each.site, placed, tuple(each.steps), place, told)
        # Last, since a device is waited for.
        learn_targets(question, found[0].output)
        if not told.errors[0].isfinite().all():
            raise ModelError(f"the output of {question.subject.name} is not finite")


class _Afterwards:
    """What is looked at when all passes are over, brought from the device at once."""

    def __init__(self, question: Question, errors: Tensor, above: Sequence[Tensor]) -> None:
        self._question, self._errors, self._above = question, errors, above

    @cached_property
    def errors(self) -> Tensor:
        """Of each site and row: how far it is from completeness, and from the true map."""
        return self._errors.cpu()

    @cached_property
    def readout(self) -> QueryWeights:
        """The share of each position; a probability near one may have no gradient that tells it."""
        try:
            found = readout_beside(self._question, *(each.cpu() for each in self._above))
        except ModelError:
            return find_readout(self._question)
        return found if bool((found.sum(dim=1) > 0).all()) else find_readout(self._question)


@dataclass(eq=False)
class _Running:
    """The integral of one site so far: its attention, and the mean of its gradients."""

    site: Site
    weights: Tensor
    gradient: Tensor
    steps: list[int]  # of each row
    error: Tensor
    worth: Tensor  # the target's probability, minus that without this attention
    is_exact: bool  # not of half precision, in which a sum says little
    ahead: Tensor | None  # what these gradients are in the next rule

    def integral(self) -> Attention:
        """The attention times the mean of its gradients."""
        return self.weights * self.gradient


@dataclass(frozen=True, eq=False)
class _Raised:
    """The attention at a site, its gradients summed by some rules, and what comes with them.

    `coarse` is None if the points have no coarser rule, `ahead` if the next rule is another.
    `last_score` is that of the last variant. The unchanged inputs have their output, their scores
    (`whole`), and the gradients of these on the last stream (`above`).
    """

    site: Site
    weights: Tensor
    fine: Tensor
    coarse: Tensor | None
    ahead: Tensor | None
    last_score: Tensor
    output: Tensor
    whole: Tensor
    above: Sequence[Tensor]
    is_exact: bool


def _begin(found: Sequence[_Raised], points: Points) -> list[_Running]:
    """The integrals after the first points; the last scores are those without attention."""
    wholes = torch.stack([each.whole for each in found])
    worths = wholes - torch.stack([each.last_score for each in found])
    unknown = found[0].weights.new_full((wholes.shape[1],), torch.nan)
    running = [
        _Running(
            *(each.site, each.weights, each.fine, [points.steps] * len(worth)),
            *(unknown, worth, each.is_exact, each.ahead),
        )
        for each, worth in zip(found, worths, strict=True)
    ]
    if points.coarser:
        before = [each.weights * each.coarse for each in found if each.coarse is not None]
        for own, error in zip(running, _errors(running, before, points), strict=True):
            own.error = error
    return running


def _errors(running: Sequence[_Running], before: Sequence[Tensor], points: Points) -> list[Tensor]:
    """The estimated error of each integral and row, as a share of the map; see `Points.errors`."""
    found = [each.error for each in running]
    now = [each.integral() for each in running]
    for places in alike(now):
        maps, rough = (torch.stack([many[place] for place in places]) for many in (now, before))
        worth = torch.stack([running[place].worth for place in places])
        is_exact = running[places[0]].is_exact
        errors = points.errors(maps, rough, worth if is_exact else None)
        for place, error in zip(places, errors, strict=True):
            found[place] = error
    return found


def _refine(
    question: Question, running: Sequence[_Running], more: Sequence[Points], given: Quadrature
) -> None:
    """Take more points until the error of each site is small enough in each row."""
    for points in more:
        rough = torch.stack([each.error for each in running]) > given.tolerance
        still = [[row for row, high in enumerate(each) if high] for each in rough.tolist()]
        active = [(each, own) for each, own in zip(running, still, strict=True) if own]
        if not active:
            return
        rows = sorted({row for _, own in active for row in own})
        asked = question if len(rows) == len(question) else question.rows(rows)
        found = _raise(asked, [each.site for each, _ in active], points, given.memory)
        before = [
            _take_in(each, own, [rows.index(row) for row in own], raised, points)
            for (each, own), raised in zip(active, found, strict=True)
        ]
        told = _errors([each for each, _ in active], before, points)
        for (each, own), error in zip(active, told, strict=True):
            index = _index(own, error)
            each.error = each.error.clone()  # sites may share it
            each.error[index] = error[index]
        for each in running:
            each.ahead = None


def _take_in(
    each: _Running, rows: Sequence[int], places: Sequence[int], raised: _Raised, points: Points
) -> Tensor:
    """Add more points to some rows of a site, which are at these places of what was raised.

    Returns what the integral is to be compared with.
    """
    index, own = _index(rows, each.gradient), _index(places, raised.fine)
    before = each.integral()
    known = points.kept * each.gradient[index] if each.ahead is None else each.ahead[index]
    each.gradient[index] = known + raised.fine[own]
    if raised.coarse is not None:
        before[index] = each.weights[index] * raised.coarse[own]
    for row in rows:
        each.steps[row] = points.steps
    return before


def _index(rows: Sequence[int], table: Tensor) -> Tensor | slice:
    """An index of these rows; of all of them it copies nothing to the device."""
    if len(rows) == len(table):
        return slice(None)
    return torch.tensor(rows, device=table.device)


def _raise(
    question: Question,
    sites: Sequence[Site],
    points: Points,
    memory: int | None,
    with_nothing: bool = False,
) -> Iterator[_Raised]:
    """The gradients at each site with its attention raised to these points.

    One more variant, the last, is without its attention if asked for: it is only scored.
    """
    factors = [*points.places, *([0.0] if with_nothing else [])]
    sums = tuple(each for each in (points.shares, points.coarser, points.ahead) if each)
    branches = [Branch(site, variants.scaled(factors)) for site in sites]
    for found in run_branches(question, branches, "probability", sums=sums, memory=memory):
        yield _raised(found, points)


def _raised(found: Branched, points: Points) -> _Raised:
    assert found.weights is not None and found.gradients is not None
    sums = iter(found.gradients)
    return _Raised(
        found.site,
        found.weights.to(found.gradients.dtype),
        next(sums),
        next(sums) if points.coarser else None,
        next(sums) if points.ahead else None,
        found.scores[-1],
        found.output,
        found.whole,
        found.above,
        is_exact=found.weights.dtype == found.gradients.dtype,
    )


def _groups(
    question: Question, sites: Sequence[Site], memory: int | None
) -> Iterator[Sequence[Site]]:
    """Groups of sites whose maps fit in memory; sites of a group share the work below them."""
    most = spare_bytes(question.subject.device, MAPS_SHARE)
    most = most if memory is None else min(most, max(memory // 4, 1))
    group: list[Site] = []
    held = 0
    for site in sites:
        size = MAPS_HELD * len(question) * map_bytes(question.inputs, [site])
        if group and held + size > most:
            yield group
            group, held = [], 0
        group.append(site)
        held += size
    yield group
