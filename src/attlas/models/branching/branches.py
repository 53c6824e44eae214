"""Branches: many variants of the attention at many sites, in one forward pass.

Each variant changes the attention at one layer and needs the output. Everything below that layer is
the same for all variants, so it is computed once. The batch starts with the inputs alone and grows
at each block by the copies that branch off there: the first block gets only the rows that exist so
far, and after the last block all rows are there.

Only the copies that branch off at a site need its attention weights. They start from those of the
unchanged input, which are computed once. All other rows use fused attention.
"""

from collections.abc import Mapping, Sequence
from contextlib import ExitStack
from dataclasses import dataclass, replace
from functools import lru_cache
from itertools import repeat
from typing import Any

import torch
from torch import Tensor

from attlas.errors import UnsupportedModelError, UsageError
from attlas.models.asking.memory import in_fitting_batches
from attlas.models.asking.open_model import OpenModel
from attlas.models.asking.question import Question
from attlas.models.asking.reading import can_be_recorded
from attlas.models.asking.readout import last_stream
from attlas.models.branching.blocks import BlockCall, study_blocks
from attlas.models.branching.branch_memory import portions
from attlas.models.branching.branch_tap import BranchTap, VariantGroup
from attlas.models.branching.growth import Growth
from attlas.models.branching.variants import Variants
from attlas.models.encoding.target import Target, best_scores
from attlas.models.facts.anatomy import anatomy
from attlas.models.facts.evaluation_mode import evaluation_mode
from attlas.models.facts.hooks import hooking
from attlas.models.tap.opening import opened_by
from attlas.models.tap.recording import run_recorded
from attlas.models.tap.two_ways import hides
from attlas.results import Site

Sums = tuple[tuple[float, ...], ...]


@dataclass(frozen=True)
class Branch:
    """A site, and the variants of its attention to run."""

    site: Site
    variants: Variants


@dataclass(frozen=True, eq=False)
class Branched:
    """The results of a branch: the target's score in each variant, and the gradients if asked.

    `scores` is `[variant, batch]`. `weights` is the unchanged attention, `[batch, head, query,
    key]`, and `gradients` those of the variants' scores on the rewritten attention, summed as was
    asked, `[sum, batch, head, query, key]`. The unchanged inputs have their output, their scores,
    and the gradients of these on the last stream (`above`).
    """

    site: Site
    scores: Tensor
    output: Tensor
    whole: Tensor  # `[batch]`
    weights: Tensor | None = None
    gradients: Tensor | None = None
    above: Sequence[Tensor] = ()


def run_branches(
    question: Question,
    branches: Sequence[Branch],
    of: str,
    *,
    sums: Sums = (),
    memory: int | None = None,
) -> list[Branched]:
    """Run every variant of every branch; `memory` limits the bytes used at once.

    `sums` has the share of each variant in each sum of gradients that is asked for. If each target
    is the class that the model predicts and nobody has looked yet, it is found on the way, and
    nothing is learnt of it: the caller has the output.
    """
    gradients = bool(sums)
    if gradients:
        question.subject.check_gradients([branch.site for branch in branches])
    calls = study_blocks(question.subject, question.inputs)
    depth = {name: number for number, call in enumerate(calls) for name in call.sites}
    for branch in branches:
        if branch.site.name not in depth:
            raise UsageError(f"unknown site {branch.site.name}: there are {', '.join(depth)}")
    order = sorted(
        (depth[branch.site.name], number, variant)
        for number, branch in enumerate(branches)
        for variant in range(branch.variants.count)
    )
    depths = [each[0] for each in order]
    found: dict[int, list[Any]] = {number: [] for number in range(len(branches))}
    too_large = f"one variant of {len(question.inputs.tokens[0])} tokens does not fit"

    def run(rows: Sequence[int]) -> Any:
        groups = _groups(branches, [order[row] for row in rows])
        return _run(question, groups, calls, of, sums)

    for chunk in portions(question, depths, len(calls), gradients, memory):
        for results in in_fitting_batches(chunk, run, too_large, "variants"):
            for group, result in results:
                found[group.branch].append((group.numbers, result))
    return [_join(each) for each in found.values()]


def _run(
    question: Question,
    merged: Sequence[VariantGroup],
    calls: Sequence[BlockCall],
    of: str,
    sums: Sums,
) -> list[tuple[VariantGroup, Branched]]:
    """One forward pass, and a backward pass if asked, over some groups, lowest first."""
    count, subject, gradients = len(question), question.subject, bool(sums)
    shares = _shares(sums, subject.device, torch.promote_types(subject.dtype, torch.float32))
    origin = _origins(count, 1 + sum(len(group.numbers) for group in merged), subject.device)
    arguments = question.inputs.arguments_of(origin)
    targets = () if question.is_of_best else question.targets
    places = [target.first_place() for target in targets]
    first = min(places) if places and subject.predicts_next else None
    masked = hides(question.inputs.arguments)

    def work(arguments: Mapping[str, Tensor]) -> list[Tensor]:
        growth, known = Growth(calls, merged, origin, count, masked), anatomy(subject.model)
        opened = BranchTap(subject.model, known.owners, merged, count, gradients)
        with opened_by(opened, known), hooking() as hooks, ExitStack() as stack:
            growth.enter(hooks, subject)
            stream = stack.enter_context(last_stream(subject)) if gradients else []
            try:
                logits = subject.run(arguments, first)
            except UnsupportedModelError as problem:
                if problem.__cause__ is None:
                    raise
                raise UnsupportedModelError(
                    f"{type(subject.model).__name__} cannot be run with copies of its input that "
                    f"join at later layers ({problem.__cause__})"
                ) from problem
            if len(logits) != len(origin):
                raise UnsupportedModelError(
                    f"{subject.name} cannot be asked about variants of its attention: it gave "
                    f"{len(logits)} outputs for {len(origin)} inputs"
                )
            scores = _scores(subject, targets, logits, of, count)
            leaves = [*opened.leaves, *stream]
            total = scores.sum()
            slopes = torch.autograd.grad(total, leaves, materialize_grads=True) if gradients else ()
        found, above = slopes[: len(opened.leaves)], slopes[len(opened.leaves) :]
        summed = [
            _summed(shares, group.numbers, slope.unflatten(0, (-1, count)))
            for group, slope in zip(merged, found, strict=False)
        ]
        own = [scores.detach(), logits[:count].detach()]
        return [*own, *opened.clean, *summed, *(each[:count] for each in above)]

    with evaluation_mode(subject.model), torch.set_grad_enabled(gradients):
        if can_be_recorded(subject) and all(group.variants.fixed for group in merged):
            key = (tuple(merged), targets, of, sums, count, masked)
            found = run_recorded(subject.model, key, arguments, work, checked=not gradients)
        else:
            found = work(arguments)
    return _results(merged, found, len(merged) if gradients else 0)


def _scores(
    subject: OpenModel, targets: Sequence[Target], logits: Tensor, of: str, count: int
) -> Tensor:
    """The target of each row, `[1 + variants, batch]`: the unchanged inputs first.

    Without targets it is the class that each of the unchanged inputs is found to be of.
    """
    if not targets:
        return best_scores(logits[:count], logits.unflatten(0, (-1, count)), subject.link, of)
    columns = [target.score(logits[index::count], of) for index, target in enumerate(targets)]
    return torch.stack(columns, dim=1)


def _groups(
    branches: Sequence[Branch], order: Sequence[tuple[int, int, int]]
) -> list[VariantGroup]:
    """The variants of each branch that run together, by depth, branch and number."""
    numbers: dict[tuple[int, int], list[int]] = {}
    for depth, branch, variant in order:
        numbers.setdefault((depth, branch), []).append(variant)
    return [
        VariantGroup(branch, branches[branch].site, branches[branch].variants, tuple(own), depth)
        for (depth, branch), own in numbers.items()
    ]


def _results(
    groups: Sequence[VariantGroup], found: Sequence[Tensor], size: int
) -> list[tuple[VariantGroup, Branched]]:
    """What a pass gave, by groups; `size` is the number of them that have gradients."""
    scores, output, *rest = found
    clean, summed, above = rest[:size], rest[size : 2 * size], rest[2 * size :]
    whole, *parts = scores.split([1, *(len(group.numbers) for group in groups)])
    held = zip(clean, summed, strict=True) if size else repeat((None, None))
    return [
        (group, Branched(group.site, own, output, whole[0], *each, above))
        for group, own, each in zip(groups, parts, held, strict=False)
    ]


@lru_cache(maxsize=64)
def _origins(count: int, copies: int, device: torch.device) -> Tensor:
    """The input that each row is a copy of; kept, so that nothing is copied to a device again."""
    return torch.arange(count).repeat(copies).to(device)


@lru_cache(maxsize=16)
def _shares(sums: Sums, device: torch.device, kind: torch.dtype) -> Tensor:
    """The shares, `[sum, variant]`; kept, because a recorded pass cannot copy them to a device."""
    return torch.tensor(sums, dtype=kind, device=device)


def _summed(shares: Tensor, numbers: Sequence[int], gradients: Tensor) -> Tensor:
    """The sums of the gradients of some variants, whose numbers follow each other."""
    kind = torch.promote_types(gradients.dtype, torch.float32)
    own = shares[:, numbers[0] : numbers[-1] + 1].to(kind)
    found: Tensor = torch.tensordot(own, gradients[: own.shape[1]].to(kind), dims=1)
    return found


def _join(results: Sequence[tuple[tuple[int, ...], Branched]]) -> Branched:
    """The results of one branch, whose variants may have run in several passes."""
    every = [each for _, each in sorted(results, key=lambda result: result[0])]
    first, *others = every
    if not others:
        return first
    gradients = [each.gradients for each in every if each.gradients is not None]
    return replace(
        first,
        scores=torch.cat([each.scores for each in every]),
        gradients=torch.stack(gradients).sum(dim=0) if gradients else None,
    )
