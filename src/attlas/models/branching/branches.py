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
from typing import Any

import torch
from torch import Tensor, nn

from attlas.errors import UnsupportedModelError, UsageError
from attlas.models.asking.memory import in_fitting_batches
from attlas.models.asking.open_model import OpenModel
from attlas.models.asking.question import Question
from attlas.models.asking.reading import can_be_recorded
from attlas.models.asking.readout import last_stream
from attlas.models.branching.blocks import BlockCall, Path, find_stacks, map_tensors, study_blocks
from attlas.models.branching.branch_memory import portions
from attlas.models.branching.branch_tap import BranchTap, VariantGroup
from attlas.models.branching.variants import Variants
from attlas.models.encoding.target import Target, best_scores
from attlas.models.facts.anatomy import anatomy
from attlas.models.facts.evaluation_mode import evaluation_mode
from attlas.models.facts.hooks import Hooks, hooking
from attlas.models.tap.opening import opened_by
from attlas.models.tap.recording import run_recorded
from attlas.models.tap.two_ways import hides
from attlas.results import Site


@dataclass(frozen=True)
class Branch:
    """A site, and the variants of its attention to run."""

    site: Site
    variants: Variants


@dataclass(frozen=True, eq=False)
class Branched:
    """The results of a branch: the target's score in each variant, and the gradients if asked.

    `scores` is `[variant, batch]`. `weights` and `gradients` are `[variant, batch, head, query,
    key]`: the rewritten attention, and the gradient of the variant's score on it. The unchanged
    inputs have their output, their scores, and the gradients of these on the last stream (`above`).
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
    gradients: bool = False,
    memory: int | None = None,
) -> list[Branched]:
    """Run every variant of every branch; `memory` limits the bytes used at once.

    If each target is the class that the model predicts and nobody has looked yet, it is found on
    the way, and nothing is learnt of it: the caller has the output.
    """
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
        return _run(question, groups, calls, of, gradients)

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
    gradients: bool,
) -> list[tuple[VariantGroup, Branched]]:
    """One forward pass, and a backward pass if asked, over some groups, lowest first."""
    count, subject = len(question), question.subject
    origin = torch.arange(count).repeat(1 + sum(len(group.numbers) for group in merged))
    arguments = question.rows(origin.tolist()).inputs.arguments
    targets = () if question.is_of_best else question.targets
    places = [target.first_place() for target in targets]
    first = min(places) if places and subject.predicts_next else None
    origin = origin.to(subject.device)
    masked = hides(question.inputs.arguments)

    def work(arguments: Mapping[str, Tensor]) -> list[Tensor]:
        growth, known = _Growth(calls, merged, origin, count, masked), anatomy(subject.model)
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
        kept = [leaf.detach() for leaf in opened.leaves]
        own = [scores.detach(), logits[:count].detach()]
        return [*own, *kept, *found, *(each[:count] for each in above)]

    with evaluation_mode(subject.model), torch.set_grad_enabled(gradients):
        if can_be_recorded(subject) and all(group.variants.fixed for group in merged):
            key = (tuple(merged), targets, of, gradients, count, masked)
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
    leaves, gradients, above = rest[:size], rest[size : 2 * size], rest[2 * size :]
    parts = scores.split([1, *(len(group.numbers) for group in groups)])
    whole, shape = scores[0], (-1, scores.shape[1])
    results = []
    for number, (group, own) in enumerate(zip(groups, parts[1:], strict=True)):
        mine = Branched(group.site, own, output, whole, above=above)
        if size:
            leaf, slope = (each[number].unflatten(0, shape) for each in (leaves, gradients))
            mine = replace(mine, weights=leaf, gradients=slope)
        results.append((group, mine))
    return results


def _join(results: Sequence[tuple[tuple[int, ...], Branched]]) -> Branched:
    """The results of one branch, whose variants may have run in several passes."""
    first, *others = [each for _, each in sorted(results, key=lambda result: result[0])]
    if not others:
        return first
    joined: dict[str, Any] = {
        name: torch.cat([getattr(each, name) for each in (first, *others)])
        for name in ("scores", "weights", "gradients")
        if getattr(first, name) is not None
    }
    return replace(first, **joined)


class _Growth:
    """Hooks that give each block the rows that exist so far."""

    def __init__(
        self,
        calls: Sequence[BlockCall],
        groups: Sequence[VariantGroup],
        origin: Tensor,
        count: int,
        masked: bool,
    ) -> None:
        self.calls = calls
        self.masked = masked
        self.origin = origin
        self.alive = [
            count * (1 + sum(len(p.numbers) for p in groups if p.depth <= number))
            for number in range(len(calls))
        ]
        self.last = {call.stack: number for number, call in enumerate(calls)}
        self.number = -1

    def enter(self, hooks: Hooks, subject: Any) -> None:
        """Put the hooks in place."""
        for blocks in find_stacks(subject.model, [path for _, path in subject.places]):
            for block in blocks:
                # The first of all hooks: the block may own the attention.
                hooks.before(block, self._before, prepend=True, with_kwargs=True)
                hooks.after(block, self._after)

    def _before(self, _: nn.Module, args: Any, kwargs: Any) -> Any:
        self.number += 1
        call = self.calls[self.number]
        return map_tensors((args, kwargs), lambda path, tensor: self._handed_in(call, path, tensor))

    def _handed_in(self, call: BlockCall, path: Path, tensor: Tensor) -> Tensor | None:
        """An argument of a block, for the rows that exist so far.

        A recorded pass always builds its mask. If it hides nothing, it is dropped here, because
        attention is faster without one.
        """
        if path in call.going_in:
            return self._fit(tensor, call.going_in[path])
        is_mask = tensor.ndim == 4 and len(tensor) == len(self.origin)
        if is_mask and not self.masked:
            return None
        return self._fit(tensor, (0, 1) if is_mask else None)

    def _after(self, _: nn.Module, __: Any, output: Any) -> Any:
        call = self.calls[self.number]
        if self.last[call.stack] != self.number:
            return output
        return map_tensors(
            output,
            lambda path, tensor: self._fit(tensor, call.coming_out.get(path), len(self.origin)),
        )

    def _fit(self, tensor: Tensor, axis: tuple[int, int] | None, rows: int | None = None) -> Tensor:
        """Cut a tensor to `rows`, or extend it by detached copies of the inputs' own rows."""
        if axis is None:
            return tensor
        needed = self.alive[self.number] if rows is None else rows
        place, entries = axis
        have = tensor.shape[place] // entries
        if have == needed:
            return tensor
        if have > needed:
            return tensor.narrow(place, 0, needed * entries)
        apart = tensor.unflatten(place, (have, entries))
        index = self.origin[have:needed]
        more = apart.index_select(place, index).detach().flatten(place, place + 1)
        return torch.cat([tensor, more], dim=place)
