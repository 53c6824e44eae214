"""Self-attention attribution: the gradient on attention, integrated from no attention to all.

Hao, Dong, Wei and Xu, "Self-Attention Attribution", AAAI 2021.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache

import torch
from torch import Tensor

from attlas.errors import ModelError, UnknownNameError, UsageError
from attlas.models.asking.map_selection import map_bytes
from attlas.models.asking.question import Question
from attlas.models.asking.reading import (
    find_readout,
    learn_targets,
    look_recorded,
    readout_from,
)
from attlas.models.branching import variants
from attlas.models.branching.branch_memory import spare_bytes
from attlas.models.branching.branches import Branch, Branched, run_branches
from attlas.models.branching.integrals import RULES, Points, fixed, rounds
from attlas.models.tap.on_patches import effects_on_patches
from attlas.results import Site
from attlas.shapes import Attention, BatchScores, QueryWeights

GRADIENT_SHARE = 1 / 8  # of the memory, for gradients


@dataclass(frozen=True)
class Quadrature:
    """How the integral is computed: with `steps`, or with more points until the error is small.

    `tolerance` is the largest error allowed, as a share of the map.
    """

    rule: str = "midpoint"
    steps: int | None = None
    tolerance: float = 0.01
    memory: int | None = None  # bytes to use besides the model; None means what is free

    def __post_init__(self) -> None:
        if self.rule not in RULES:
            raise UnknownNameError("rule", self.rule, RULES)
        if self.steps is None and self.rule != "midpoint":
            raise UsageError(
                f"the {self.rule} rule needs a number of steps; midpoint finds its own"
            )
        if self.steps is not None and self.steps < 1:
            raise UsageError(f"steps are at least 1, not {self.steps}")
        if not self.tolerance > 0:
            raise UsageError(f"tolerance is above 0, not {self.tolerance}")
        if self.memory is not None and self.memory <= 0:
            raise UsageError(f"memory is above 0, not {self.memory}")

    @property
    def rounds(self) -> Sequence[Points]:
        """The points to take, round after round while the error is too large."""
        return rounds() if self.steps is None else [fixed(self.steps, self.rule)]


@dataclass(frozen=True, eq=False)
class Attribution:
    """The attribution of the attention at one site, `[batch, head, query, key]`.

    For each row: how far the attributions are from summing to the effect of the attention, the
    estimated error as a share of the map (NaN if unknown), and the number of steps. `readout` are
    the positions that the target is read from, as weights. All attributions must be taken: whether
    the output is finite is looked at behind the last.
    """

    site: Site
    weights: Attention
    completeness_error: BatchScores
    map_error: BatchScores
    steps: tuple[int, ...]
    read: "_Readout"

    @property
    def readout(self) -> QueryWeights:
        """`[batch, position]`, of the last stream; a device is waited for."""
        return self.read.shares


def attributions(
    question: Question, sites: Sequence[Site], quadrature: Quadrature
) -> Iterator[Attribution]:
    """The attribution of the attention at each of these sites; groups of sites run together."""
    if not question.is_of_best:
        look_recorded(question)
    first, *more = quadrature.rounds
    readout: _Readout | None = None
    for group in _groups(question, sites, len(first.places) + 1, quadrature.memory):
        found = list(_raise(question, group, first, quadrature.memory, with_nothing=True))
        running = _begin(found, first)
        if more:
            learn_targets(question, found[0].output)
            _refine(question, running, more, quadrature)
        weights = [each.integral() for each in running]
        sums = torch.stack([own.sum(dim=(1, 2, 3)) for own in weights])
        errors = (sums - torch.stack([each.worth for each in running])).abs()
        readout = readout or _Readout(question, found[0].above)
        for each, own, error in zip(running, weights, errors, strict=True):
            placed = effects_on_patches(own, question.subject.stages(question.inputs))
            yield Attribution(each.site, placed, error, each.error, tuple(each.steps), readout)
        # Last, since a device is waited for.
        learn_targets(question, found[0].output)
        if not errors.isfinite().all():
            raise ModelError(f"the output of {question.subject.name} is not finite")


class _Readout:
    """Where the target is read; a probability near one may have no gradient that tells it."""

    def __init__(self, question: Question, above: Sequence[Tensor]) -> None:
        self._question, self._above = question, above

    @cached_property
    def shares(self) -> QueryWeights:
        """The share of each position."""
        try:
            found = readout_from(self._question, *self._above)
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
    running = []
    for each, worth in zip(found, worths, strict=True):
        steps = [points.steps] * len(worth)
        begun = _Running(
            each.site, each.weights, each.fine, steps, unknown, worth, each.is_exact, each.ahead
        )
        if each.coarse is not None:
            begun.error = _error(begun, slice(None), each.weights * each.coarse, points)
        running.append(begun)
    return running


def _error(each: _Running, rows: Tensor | slice, before: Tensor, points: Points) -> Tensor:
    """The estimated error of some rows, as a share of the map: by a coarser rule, and by the sum.

    A rule that misses where the target moves does not sum to what the attention is worth.
    """
    now = each.integral()[rows]
    size = now.abs().sum(dim=(1, 2, 3)).clamp_min(1e-30)
    apart = points.error((now - before).abs().sum(dim=(1, 2, 3)) / size)
    if not (points.sums_up and each.is_exact):
        return apart
    return torch.maximum(apart, (now.sum(dim=(1, 2, 3)) - each.worth[rows]).abs() / size)


def _refine(
    question: Question, running: Sequence[_Running], more: Sequence[Points], given: Quadrature
) -> None:
    """Take more points until the error of each site is small enough in each row."""
    for points in more:
        still = {
            each.site.name: (each.error > given.tolerance).nonzero()[:, 0].tolist()
            for each in running
        }
        active = [each for each in running if still[each.site.name]]
        if not active:
            return
        rows = sorted({row for each in active for row in still[each.site.name]})
        asked = question if len(rows) == len(question) else question.rows(rows)
        found = _raise(asked, [each.site for each in active], points, given.memory)
        for each, raised in zip(active, found, strict=True):
            own = still[each.site.name]
            _take_in(each, own, [rows.index(row) for row in own], raised, points)
        for each in running:
            each.ahead = None


def _take_in(
    each: _Running, rows: Sequence[int], places: Sequence[int], raised: _Raised, points: Points
) -> None:
    """Add more points to some rows of a site, which are at these places of what was raised."""
    index = torch.tensor(rows, device=raised.fine.device)
    before = each.integral()[index]
    known = points.kept * each.gradient[index] if each.ahead is None else each.ahead[index]
    each.gradient[index] = known + raised.fine[places]
    if raised.coarse is not None:
        before = each.weights[index] * raised.coarse[places]
    for row in rows:
        each.steps[row] = points.steps
    each.error[index] = _error(each, index, before, points)


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
    for group in _groups(question, sites, len(factors), memory):
        branches = [Branch(site, variants.scaled(factors)) for site in group]
        for found in run_branches(question, branches, "probability", gradients=True, memory=memory):
            yield _summed(found, points)


def _summed(found: Branched, points: Points) -> _Raised:
    assert found.weights is not None and found.gradients is not None
    count = len(points.places)
    wide = torch.promote_types(found.weights.dtype, torch.float32)
    clean = found.weights[count - 1].to(wide) / points.places[-1]
    table = _table(points, clean.device, wide)
    sums = iter(torch.tensordot(table, found.gradients[:count].to(wide), dims=1))
    return _Raised(
        found.site,
        clean,
        next(sums),
        next(sums) if points.coarser else None,
        next(sums) if points.ahead else None,
        found.scores[-1],
        found.output,
        found.whole,
        found.above,
        is_exact=found.weights.dtype == wide,
    )


@lru_cache(maxsize=16)
def _table(points: Points, device: torch.device, kind: torch.dtype) -> Tensor:
    """The shares of the points in each rule, `[rule, point]`, on the device once and for all."""
    rules = [each for each in (points.shares, points.coarser, points.ahead) if each]
    return torch.tensor(rules, dtype=kind, device=device)


def _groups(
    question: Question, sites: Sequence[Site], steps: int, memory: int | None
) -> Iterator[Sequence[Site]]:
    """Groups of sites whose gradients fit in memory; sites of a group share the work below them."""
    most = spare_bytes(question.subject.device, GRADIENT_SHARE)
    most = most if memory is None else min(most, max(memory // 4, 1))
    group: list[Site] = []
    held = 0
    for site in sites:
        size = steps * len(question) * map_bytes(question.inputs, [site])
        if group and held + size > most:
            yield group
            group, held = [], 0
        group.append(site)
        held += size
    yield group
