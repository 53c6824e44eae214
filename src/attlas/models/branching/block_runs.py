"""Running one block again on copies of its input, each without the value of one key.

The copies attend alike, so their attention is computed once. What a copy lacks of the mixed values
is the value of its key times the weight of that key.
"""

from collections.abc import Mapping, Sequence
from contextlib import AbstractContextManager
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn.functional import one_hot

from attlas.errors import AttlasError, UnsupportedModelError, first_line
from attlas.models.asking.memory import in_fitting_batches, is_passing, rows_of
from attlas.models.asking.open_model import OWN_FAILURES
from attlas.models.asking.question import Question
from attlas.models.asking.reading import Folded, find_readout
from attlas.models.branching.attention_call import AttentionCall
from attlas.models.branching.blocks import (
    BlockCall,
    find_stacks,
    map_tensors,
    study_blocks,
    take_rows,
    to_run_again,
)
from attlas.models.facts.anatomy import anatomy
from attlas.models.facts.evaluation_mode import evaluation_mode
from attlas.models.facts.hooks import hooking
from attlas.models.facts.sites import Owner
from attlas.models.tap.call import SiteKeys
from attlas.models.tap.edits import Edit
from attlas.models.tap.opening import opened_by, tap
from attlas.models.tap.tap import Tap
from attlas.shapes import Attention, HeadMean, Visible

ATTENTION_BYTES = 2**29  # for one site, over all copies
COPIES = 4  # copies of the attention in memory while it is rewritten
NOTHING = 1e-30


@dataclass(frozen=True, eq=False)
class BlockRun:
    """A block with the arguments of one call, so that it can run again."""

    question: Question
    block: nn.Module
    call: BlockCall
    arguments: tuple[tuple[Any, ...], Mapping[str, Any]]
    stream: Tensor  # its output, `[batch, query, feature]`

    def without_each_value(self, site: str) -> HeadMean:
        """How far each output moves when the value of one key is zero, `[batch, query, key]`.

        The distance is one minus the cosine. The value is zero for every head of the site; the
        other weights stay as they are.
        """
        kind, number = _within(self.call.sites, site)
        weights = self._attention(kind, number)
        keys, heads = weights.shape[-1], weights.shape[1]
        tokens = self.stream.shape[0] * max(self.stream.shape[1], keys)
        step = copies_at_once(self.stream.device, tokens, weights.nbytes)
        columns = [
            column
            for start in range(0, keys, step)
            for column in in_fitting_batches(
                range(start, min(start + step, keys)),
                lambda chosen: self._distances(kind, number, chosen),
                f"one copy of {site} with {heads} heads and {keys} keys does not fit",
                "variants",
            )
        ]
        return torch.cat(columns, dim=-1)

    def _attention(self, kind: str, number: int) -> Attention:
        """The weights of a site of this block; raises unless the block reproduces its output."""
        with tap(self.question.subject.model) as seen:
            again = self._run(1)[0]
        tolerance = 1e-3 if again.dtype in (torch.float32, torch.float64) else 5e-2
        if (again - self.stream).abs().max() > tolerance * self.stream.abs().max():
            raise UnsupportedModelError(
                f"{type(self.block).__name__} gives another output when it runs again on the same "
                "input, so the effect of a value in it cannot be measured"
            )
        found = [call for call in seen.calls if call.site.kind == kind]
        if number >= len(found):
            raise UnsupportedModelError(
                f"{type(self.block).__name__} attends less often when it runs alone than within "
                "its model, so the effect of a value in it cannot be measured"
            )
        return found[number].weights

    def _distances(self, kind: str, number: int, columns: Sequence[int]) -> Tensor:
        model = self.question.subject.model
        with without_values(model, kind, number, columns, len(self.stream)):
            outputs = self._run(1 + len(columns))
        return cosine_distances(outputs[0], outputs[1:]).movedim(0, -1)

    def _run(self, copies: int) -> Tensor:
        """Run the block on copies of its input: `[copy, batch, query, feature]`."""
        rows = len(self.stream)
        index = torch.arange(rows, device=self.stream.device).repeat(copies)
        args, kwargs = map_tensors(
            self.arguments,
            lambda path, tensor: take_rows(tensor, self.call.going_in.get(path), index),
        )
        try:
            with torch.no_grad(), evaluation_mode(self.question.subject.model):
                output = self.block(*args, **kwargs)
        except OWN_FAILURES as problem:
            if isinstance(problem, AttlasError) or is_passing(problem):
                raise
            raise UnsupportedModelError(
                f"{type(self.block).__name__} fails when it runs again outside its model, so the "
                f"effect of a value in it cannot be measured ({first_line(problem)})"
            ) from problem
        stream: Tensor = rows_first(output, self.call).unflatten(0, (copies, rows))
        return stream


def copies_at_once(device: torch.device, tokens: int, attention: int) -> int:
    """How many copies of so many tokens, with so many bytes of attention, a block runs on."""
    return max(1, min(rows_of(device, tokens), ATTENTION_BYTES // max(COPIES * attention, 1)))


def read_blocks(question: Question) -> Folded[BlockRun]:
    """The block calls of a forward pass, in order, and the readout."""
    subject = question.subject
    calls = study_blocks(subject, question.inputs)
    found: list[BlockRun] = []

    def note(block: nn.Module, args: tuple[Any, ...], kwargs: dict[str, Any], output: Any) -> None:
        call = calls[len(found)]
        held = map_tensors((args, to_run_again(kwargs)), lambda _, tensor: tensor.detach())
        found.append(BlockRun(question, block, call, held, rows_first(output, call).detach()))

    with evaluation_mode(subject.model), hooking() as hooks:
        for blocks in find_stacks(subject.model, [path for _, path in subject.places]):
            for block in blocks:
                hooks.after(block, note, with_kwargs=True)
        readout = find_readout(question)
    return Folded(found, readout)


def rows_first(output: Any, call: BlockCall) -> Tensor:
    """The hidden states in the output of a block, `[row, query, feature]`."""
    path = () if isinstance(output, Tensor) else (0,)
    stream = output if isinstance(output, Tensor) else output[0]
    axis, entries = call.coming_out.get(path) or (0, 0)
    if entries != 1 or stream.ndim != 3:
        raise UnsupportedModelError(
            f"the output of a block is {tuple(stream.shape)}: none of its axes is the batch"
        )
    return stream.movedim(axis, 0)


def cosine_distances(clean: Tensor, changed: Tensor) -> Tensor:
    """One minus the cosine of each vector and its changed version, exact for small distances."""
    apart = _unit(changed).sub_(_unit(clean))
    distances: Tensor = apart.norm(dim=-1).square_().div_(2)
    return distances


def _unit(vectors: Tensor) -> Tensor:
    """The vectors in float64 with a length of one, in memory of their own."""
    wide = vectors.to(torch.float64, copy=True)
    return wide.div_(wide.norm(dim=-1, keepdim=True).clamp_min_(NOTHING))


def _within(sites: Sequence[str], site: str) -> tuple[str, int]:
    """The kind of a site, and its number among the sites of that kind."""
    kind = site.split(".")[0]
    alike = [name for name in sites if name.split(".")[0] == kind]
    return kind, alike.index(site)


def without_values(
    model: nn.Module, kind: str, number: int, columns: Sequence[int], batch: int
) -> AbstractContextManager[Tap]:
    """Take the value of one of these keys from each copy of a batch but the first, at one site."""
    known = anatomy(model)
    edit = without_columns(columns, batch).at(kind=kind, layer=number)
    return opened_by(ZeroedTap(model, known.owners, edit, columns, batch), known)


class ZeroedTap(Tap):
    """A tap on a block that runs on copies of a batch: the first is as it is."""

    def __init__(
        self,
        model: nn.Module,
        owners: Sequence[Owner],
        edit: Edit,
        columns: Sequence[int],
        batch: int,
    ) -> None:
        super().__init__(model, owners, [edit], wants=lambda site: False)
        self._columns = list(columns)
        self._batch = batch

    def take_over(
        self,
        module: nn.Module,
        streams: tuple[Tensor, Tensor, Tensor],
        mask: Tensor | None,
        given: Mapping[str, Any],
        outer: Sequence[Tap],
    ) -> Tensor | None:
        """The attention output of all copies; None at other sites, which run as they are.

        Taps around this one read and rewrite weights, so with them each copy gets its own.
        """
        owner = self._owners[id(module)]
        parts = self._parts(owner, streams[0].shape[1])
        changed = [part for part in parts if self.edits[0].touches(part.site)]
        if outer or not changed:
            return None
        self._unmet[owner.path] -= 1
        called = AttentionCall(module, parts, streams, mask, given, ())
        weights, output = called.rows(slice(0, self._batch)).spelled_out()
        return self._of_copies(weights, streams[2][: self._batch], output, changed[0])

    def _of_copies(
        self, weights: Attention, values: Tensor, output: Tensor, part: SiteKeys
    ) -> Tensor:
        """The output `[batch, query, head, width]` for each copy, `[copy × batch, …]`."""
        groups = weights.shape[1] // values.shape[1]
        shares = part.of(weights)[..., self._columns].permute(3, 0, 2, 1)[..., None]
        lost = part.among(values)[:, :, self._columns].repeat_interleave(groups, dim=1)
        copies = output.new_empty(1 + len(self._columns), *output.shape)
        copies[0] = output
        torch.addcmul(
            output, shares, lost.permute(2, 0, 1, 3)[:, :, None], value=-1, out=copies[1:]
        )
        return copies.flatten(0, 1)


def without_columns(columns: Sequence[int], batch: int) -> Edit:
    """Set the weight of one of these keys to zero in each copy of a batch, without rescaling.

    The first copy is unchanged: the others are compared with it, computed in the same batch.
    """

    def change(weights: Attention, _: Visible) -> Attention:
        keys = weights.shape[-1]
        chosen = torch.tensor([keys, *columns], device=weights.device)
        kept = ~one_hot(chosen, keys + 1)[:, :keys].bool()
        return weights * kept.repeat_interleave(batch, dim=0)[:, None, None]

    return Edit("without columns", change)
