"""The batch of a branched pass: it grows at each block by the copies that start there."""

from collections.abc import Sequence
from typing import Any

from torch import Tensor, cat, nn

from attlas.models.branching.blocks import BlockCall, Path, find_stacks, map_tensors
from attlas.models.branching.branch_tap import VariantGroup
from attlas.models.facts.hooks import Hooks


class Growth:
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
        return cat([tensor, more], dim=place)
