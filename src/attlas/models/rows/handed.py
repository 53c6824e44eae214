"""What an attention function was handed, and any rows of its weights computed again from that."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from itertools import accumulate
from operator import attrgetter
from typing import Any

import torch
from torch import Tensor, nn
from torch.utils.checkpoint import checkpoint

from attlas.models.rows.sliced_masks import SlicedMask
from attlas.models.tap.eager_attention import (
    added_mask,
    causal_mask,
    looks_back,
    mask_of_fused,
    run_eager,
)
from attlas.models.tap.fused import is_fusible, run_fused, run_fused_as_found
from attlas.results import Site

SLICE_BYTES = {"cpu": 2**24, "cuda": 2**31}  # what the weights of one slice of rows may take
COPIES = 4  # of these weights that exist while they are computed
TINY = 1e-30  # keeps a row of zeros at zero
MOST = 1e38  # a precision that holds numbers of this size holds any row, bfloat16 included
FUSED_ON = {"cuda"}  # where the gradient of fused attention is faster than slices
_requires_grad = attrgetter("requires_grad")


@dataclass(frozen=True, eq=False)
class RowSlice:
    """The weights of some query rows over the keys that one of them can see."""

    site: Site
    rows: Tensor
    keys: slice
    weights: Tensor  # `[batch, head, row, key]`
    gradient: Tensor  # of the target on these weights; empty if none was asked for


@dataclass(frozen=True, eq=False)
class HandedCall:
    """What the attention function of one site was handed in a pass.

    `by_sdpa` tells whether the mask is one for `sdpa`: then a call without one may be causal.
    `gradient` is that of the target on the output, `[target, query, head, width]`. `mixed` are
    the fused output and the values that it alone depends on in its graph, where that was kept.
    """

    site: Site
    module: nn.Module
    streams: tuple[Tensor, Tensor, Tensor]  # query, key and value
    mask: Tensor | SlicedMask | None
    given: Mapping[str, Any]
    by_sdpa: bool
    gradient: Tensor | None = None
    mixed: tuple[Tensor, Tensor] | None = None

    @property
    def queries(self) -> int:
        """How many positions attend."""
        return self.streams[0].shape[2]

    @property
    def keys(self) -> int:
        """How many positions are attended to."""
        return self.streams[1].shape[2]

    def output(self) -> Tensor:
        """The output of the attention: fused where that was proven, otherwise slice by slice."""
        fused = None
        if self.mixed or not self._is_sliced:
            fused = self.mixed[0].detach() if self.mixed else self._fused(self.streams)
        if fused is not None:
            return fused
        every = torch.arange(self.queries, device=self.streams[0].device)
        # Fused attention holds the mask of the rows and no weights: as many rows as heads take one.
        wide = self.streams[0].shape[1] if is_fusible(self.module) else 1
        in_graph = torch.is_grad_enabled() and any(map(_requires_grad, self.streams))
        return torch.cat(
            [
                # A graph would hold the weights of all slices; they are computed once more instead.
                checkpoint(self._mixed, rows, use_reentrant=False, preserve_rng_state=False)
                if in_graph
                else self._mixed(rows)
                for rows in every.split(self._rows_at_once(1) * wide)
            ],
            dim=1,
        )

    def beside_graph(self) -> "HandedCall":
        """The call with what it was handed outside of the graph of the pass."""
        if not any(map(_requires_grad, self.streams)):
            return self
        query, key, value = map(Tensor.detach, self.streams)
        return replace(self, streams=(query, key, value))

    def with_graph(self) -> "HandedCall":
        """The call with the graph of its fused output, if there is one: `pull` needs it."""
        query, key, value = map(Tensor.detach, self.streams)
        with torch.enable_grad():
            output = self._fused((query, key, value.requires_grad_()))
        return self if output is None else replace(self, mixed=(output, value))

    @property
    def pulls(self) -> bool:
        """Whether the gradient of fused attention is to be used."""
        return self.streams[0].device.type in FUSED_ON and is_fusible(self.module)

    def spelled_out(self) -> tuple[Tensor, Tensor]:
        """The output and the weights of all rows at once, which only a short input bears."""
        query, key, _ = self.streams
        mask = self._whole_mask
        if self.by_sdpa:
            mask = mask_of_fused(self.module, query, key, mask, self.given)
        return run_eager(self.module, *self.streams, mask, **self.given)

    def slices(self, rows: Sequence[int]) -> Iterator[RowSlice]:
        """The weights of these query rows, a few rows at a time.

        A range of rows is made on the device, so that nothing has to be waited for.
        """
        targets, device = 1 if self.gradient is None else len(self.gradient), self.streams[0].device
        places = (
            torch.arange(rows.start, rows.stop, device=device)
            if isinstance(rows, range)
            else torch.tensor(rows, device=device)
        )
        parts = places.split(self._rows_at_once(targets))
        ends = accumulate(map(len, parts))
        return map(self._spell_out, parts, [rows[end - 1] for end in ends])

    @torch.no_grad()
    def _spell_out(self, rows: Tensor, last: int) -> RowSlice:
        query, key, value = self.streams
        keys, mask = self._narrowed(rows, last)
        # The mixed values are not asked for: one feature of them costs next to nothing.
        streams = (query[:, :, rows], key[:, :, keys], value[:, :, keys, :1])
        _, weights = run_eager(self.module, *streams, mask, **self._given(rows))
        return RowSlice(self.site, rows, keys, weights, self._gradient_on(rows, keys))

    def pull(self, row: Tensor) -> Tensor | None:
        """Rows over the queries times the mean of all heads, `[target, key]`, without any map.

        It is the gradient of fused attention on its values if the row is the gradient on its
        output. None where fused attention was not proven, or where slices are faster.
        """
        return self.pull_fused(row) if self.mixed or self.pulls else None

    def pull_fused(self, row: Tensor) -> Tensor | None:
        """What `pull` returns, on any device."""
        kept = self if self.mixed else self.with_graph()
        if kept.mixed is None:
            return None
        output, mixed = kept.mixed
        largest = _largest(row, output.dtype)
        scaled = row if largest is None else row / largest
        share = len(mixed) == 1 < len(row)  # the map of one input serves every row
        columns = scaled.T[None] if share else scaled[:, :, None]
        parts = _parts_of(row.dtype, output.dtype)
        pulled = [
            _pull_columns(output, mixed, some, parts)
            for some in columns.split(mixed.shape[-1] // parts, dim=-1)
        ]
        joined = pulled[0] if len(pulled) == 1 else torch.cat(pulled, dim=-1)
        total = (joined[0].T if share else joined[..., 0]) / output.shape[2]
        return total if largest is None else largest * total

    def _fused(self, streams: tuple[Tensor, Tensor, Tensor]) -> Tensor | None:
        if not is_fusible(self.module):
            return None
        run = run_fused_as_found if self.by_sdpa else run_fused
        return run(self.module, streams, self._whole_mask, self.given)

    def _mixed(self, rows: Tensor) -> Tensor:
        query, key, value = self.streams
        keys, mask = self._narrowed(rows, int(rows[-1]))
        streams = (query[:, :, rows], key[:, :, keys], value[:, :, keys])
        given = self._given(rows)
        fused = run_fused(self.module, streams, mask, given) if is_fusible(self.module) else None
        return run_eager(self.module, *streams, mask, **given)[0] if fused is None else fused

    @property
    def _is_sliced(self) -> bool:
        """Whether the mask is made by rows; fused attention on a GPU takes it whole."""
        return isinstance(self.mask, SlicedMask) and self.streams[0].device.type not in FUSED_ON

    @property
    def _whole_mask(self) -> Tensor | None:
        return self.mask.whole if isinstance(self.mask, SlicedMask) else self.mask

    def _gradient_on(self, rows: Tensor, keys: slice) -> Tensor:
        """The gradient on the weights: that on the output times the values."""
        if self.gradient is None:
            return self.streams[2].new_empty(0)
        above = self.gradient[:, rows].transpose(1, 2)  # `[target, head, row, width]`
        values = self.streams[2][:, :, keys]
        groups = above.shape[1] // values.shape[1]
        shared = values if groups == 1 else values.repeat_interleave(groups, dim=1)
        return above @ shared.mT

    def _narrowed(self, rows: Tensor, last: int) -> tuple[slice, Tensor | None]:
        """The keys that some of these rows can see, and the mask of the rows over these keys."""
        query = self.streams[0]
        every = slice(0, self.keys)
        if self.mask is None:
            if not (self.by_sdpa and looks_back(self.module, query, self.given)):
                return every, None
            stop = self.keys if self._is_biased else min(last + 1, self.keys)
            sees_all = len(rows) == 1 and stop == last + 1
            return slice(0, stop), None if sees_all else causal_mask(query, rows, stop)
        mask = self._mask_of(rows, self.mask)
        keys = every if self._is_biased else _seen_keys(mask[..., every])
        mask = mask[..., keys]
        return keys, added_mask(mask, query) if self.by_sdpa else mask

    @staticmethod
    def _mask_of(rows: Tensor, mask: Tensor | SlicedMask) -> Tensor:
        if isinstance(mask, SlicedMask):
            return mask.rows(rows)
        return mask if mask.shape[-2] == 1 else mask.index_select(-2, rows)

    @property
    def _is_biased(self) -> bool:
        """Whether the call was handed more tensors with an axis for the keys."""
        return any(map(self._has_rows, self.given.values()))

    def _has_rows(self, value: Any) -> bool:
        wide = isinstance(value, Tensor) and value.ndim > 2
        return wide and tuple(value.shape[-2:]) == (self.queries, self.keys)

    def _given(self, rows: Tensor) -> dict[str, Any]:
        return {
            name: value.index_select(-2, rows) if self._has_rows(value) else value
            for name, value in self.given.items()
        }

    def _rows_at_once(self, targets: int) -> int:
        query = self.streams[0]
        most = SLICE_BYTES.get(query.device.type, SLICE_BYTES["cpu"])
        size = COPIES * 4 * max(len(query), targets) * query.shape[1] * self.keys
        return max(1, most // size)


def _seen_keys(mask: Tensor) -> slice:
    """The span of the keys that some row can see; all if a row sees none, which reads them all."""
    seen = mask if mask.dtype == torch.bool else mask > torch.finfo(mask.dtype).min / 2
    each = seen.flatten(0, -2)
    if not each.any(dim=-1).all():
        return slice(0, mask.shape[-1])
    found = each.any(dim=0).nonzero()
    return slice(int(found[0]), int(found[-1]) + 1)


def _largest(row: Tensor, kind: torch.dtype) -> Tensor | None:
    """What to divide rows by so that they fit into this precision; None if they do anyway."""
    if torch.finfo(kind).max >= MOST:
        return None
    return row.abs().amax(dim=-1, keepdim=True).clamp_min(TINY)


def _parts_of(of_row: torch.dtype, kind: torch.dtype) -> int:
    """In how many parts a row is given to a precision: in half precision, a high and a low one."""
    return 1 if torch.finfo(kind).bits >= torch.finfo(of_row).bits else 2


def _pull_columns(output: Tensor, mixed: Tensor, columns: Tensor, parts: int) -> Tensor:
    """Columns over the queries times the sum of all heads, `[batch, key, column]`."""
    above, count, given = torch.zeros_like(output), columns.shape[-1], columns[:, :, None]
    high = above[..., :count]
    high.copy_(given)
    if parts == 2:  # what the high part leaves, rounded as it is written
        torch.sub(given, high, out=above[..., count : 2 * count])
    (found,) = torch.autograd.grad(output, mixed, above, retain_graph=True)
    used: Tensor = found[..., : parts * count].unflatten(-1, (parts, count))
    return used.sum(dim=(1, -2), dtype=columns.dtype)
