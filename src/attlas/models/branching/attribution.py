"""Self-attention attribution: the gradient on attention, integrated from no attention to all.

Hao, Dong, Wei and Xu, "Self-Attention Attribution", AAAI 2021.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from attlas.errors import UnknownNameError, UsageError
from attlas.models.asking.map_selection import map_bytes
from attlas.models.asking.question import Question
from attlas.models.asking.scores import target_scores
from attlas.models.branching import variants
from attlas.models.branching.branch_memory import spare_bytes
from attlas.models.branching.branches import Branch, run_branches
from attlas.models.tap.on_patches import effects_on_patches
from attlas.results import Site
from attlas.shapes import Attention, BatchScores

RULES = ("midpoint", "right")
FIRST, MOST = 4, 108  # midpoints at first and at most; each round has three times as many
GRADIENT_SHARE = 1 / 8  # of the memory, for gradients


@dataclass(frozen=True)
class Quadrature:
    """How the integral is computed: with `steps`, or by midpoints until the error is small.

    The midpoints of n steps are also midpoints of 3n steps, so work is reused. An eighth of the
    difference between the two results estimates the error of the second. `tolerance` is the
    largest error allowed, as a share of the map.
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


@dataclass(frozen=True, eq=False)
class Attribution:
    """The attribution of the attention at one site, `[batch, head, query, key]`.

    For each row: how far the attributions are from summing to the effect of the attention, the
    estimated error as a share of the map (NaN if unknown), and the number of steps.
    """

    site: Site
    weights: Attention
    completeness_error: BatchScores
    map_error: BatchScores
    steps: tuple[int, ...]


def attributions(
    question: Question, sites: Sequence[Site], quadrature: Quadrature
) -> Iterator[Attribution]:
    """The attribution of the attention at each of these sites; groups of sites run together."""
    whole = _whole(question)
    steps = quadrature.steps or FIRST
    factors = places(steps, quadrature.rule)
    memory = quadrature.memory
    for group in _groups(question, sites, steps + 1, memory):
        raised = _raise(question, group, [*factors, 0.0], memory)
        running = [_begin(found, steps, whole) for found in raised]
        if quadrature.steps is None:
            _refine(question, running, quadrature)
        for each in running:
            weights = each.integral()
            error = (weights.sum(dim=(1, 2, 3)) - each.worth).abs()
            placed = effects_on_patches(weights, question.subject.stages(question.inputs))
            yield Attribution(each.site, placed, error, each.error, tuple(each.steps))


def _whole(question: Question) -> BatchScores:
    """The target's probability with unchanged attention."""
    if not question.known_scores:
        return target_scores(question, "probability")
    known = [found["probability"] for found in question.known_scores]
    kind = torch.promote_types(next(question.subject.model.parameters()).dtype, torch.float32)
    return torch.tensor(known, device=question.subject.device, dtype=kind)


def places(steps: int, rule: str) -> list[float]:
    """The factors, between 0 and 1, of the attention at which the gradient is taken."""
    late = 0.5 if rule == "midpoint" else 1.0
    return [(step + late) / steps for step in range(steps)]


def added_places(steps: int) -> list[float]:
    """The midpoints of `3 * steps` steps that are not midpoints of `steps` steps."""
    return [(step + 0.5) / (3 * steps) for step in range(3 * steps) if step % 3 != 1]


@dataclass(eq=False)
class _Running:
    """The integral of one site so far: its attention, and the sum of the gradients."""

    site: Site
    weights: Tensor
    gradients: Tensor
    steps: list[int]  # of each row
    error: Tensor
    worth: Tensor  # the target's probability, minus that without this attention

    def integral(self) -> Attention:
        """The attention times the mean of its gradients."""
        if len(set(self.steps)) == 1:
            return self.weights * self.gradients / self.steps[0]
        steps = torch.tensor(self.steps, device=self.weights.device)
        return self.weights * self.gradients / steps[:, None, None, None]


@dataclass(frozen=True, eq=False)
class _Raised:
    """The attention at a site, the sum of its gradients at some factors, and the last score."""

    site: Site
    weights: Tensor
    gradients: Tensor
    last_score: Tensor


def _begin(found: _Raised, steps: int, whole: BatchScores) -> _Running:
    """The integral after the first steps; the last score is that without attention."""
    return _Running(
        found.site,
        found.weights,
        found.gradients,
        [steps] * len(whole),
        found.weights.new_full((len(whole),), torch.nan),
        whole - found.last_score,
    )


def _refine(question: Question, running: Sequence[_Running], quadrature: Quadrature) -> None:
    """Triple the steps until the error of each site is small enough in each row."""
    steps, active = FIRST, list(running)
    open_rows = {each.site.name: list(range(len(question))) for each in running}
    while active and 3 * steps <= MOST:
        rows = sorted({row for each in active for row in open_rows[each.site.name]})
        added = added_places(steps)
        sites = [each.site for each in active]
        found = _raise(question.rows(rows), sites, added, quadrature.memory)
        for each, raised in zip(active, found, strict=True):
            own = open_rows[each.site.name]
            more = raised.gradients[[rows.index(row) for row in own]]
            open_rows[each.site.name] = _take_in(each, own, more, len(added), quadrature.tolerance)
        steps *= 3
        active = [each for each in active if open_rows[each.site.name]]


def _take_in(
    each: _Running, rows: Sequence[int], more: Tensor, count: int, tolerance: float
) -> list[int]:
    """Add gradients to some rows of a site; return the rows whose error is still too large."""
    index = torch.tensor(rows, device=more.device)
    before = each.integral()[index]
    each.gradients[index] += more
    for row in rows:
        each.steps[row] += count
    now = each.integral()[index]
    size = now.abs().sum(dim=(1, 2, 3))
    each.error[index] = (now - before).abs().sum(dim=(1, 2, 3)) / 8 / size.clamp_min(1e-30)
    too_large = (each.error[index] > tolerance).tolist()
    return [row for row, is_open in zip(rows, too_large, strict=True) if is_open]


def _raise(
    question: Question, sites: Sequence[Site], factors: Sequence[float], memory: int | None
) -> Iterator[_Raised]:
    """The gradients at each site with its attention times these factors; a zero only scores."""
    counted = [number for number, factor in enumerate(factors) if factor]
    for group in _groups(question, sites, len(factors), memory):
        branches = [Branch(site, variants.scaled(factors)) for site in group]
        for found in run_branches(question, branches, "probability", gradients=True, memory=memory):
            assert found.weights is not None and found.gradients is not None
            wide = torch.promote_types(found.weights.dtype, torch.float32)
            clean = found.weights[counted[-1]].to(wide) / factors[counted[-1]]
            summed = found.gradients[: len(counted)].sum(dim=0, dtype=wide)
            yield _Raised(found.site, clean, summed, found.scores[-1])


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
