"""Effective weights: attention without its component in the null space of the values.

A row of weights over its visible keys is the sum of a component in the column space of their values
and a component in the null space, which changes no output. Everything is computed in float64.

Rows often see nearly the same keys: in a decoder, each sees one more than the row before. So what
can be is proven for many rows at once: keys whose values are independent stay so among fewer keys,
and directions that the values of some keys span, those of more keys span too.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from attlas.mathematics.null_space import (
    LEAST_SQUARED,
    are_whole,
    centred,
    column_basis,
    rounding,
)
from attlas.shapes import Attention, HeadValues, Visible

BYTES_AT_ONCE = {"cpu": 2**23, "cuda": 2**30}  # a CPU is fast on what fits its cache
LEAST_SOLVED = 1e-5  # above it, two steps solve with squares as well as without


def effective_weights(
    weights: Attention, values: HeadValues, visible: Visible, *, keep_sums: bool = False
) -> Attention:
    """The weights without their component in the null space of the values, in float64.

    Each row is projected on the column space of its visible values and is zero elsewhere; a row
    whose values are linearly independent stays as it is. With `keep_sums` the removed component
    also sums to zero. The precision of `values` decides which of their directions are rounding.
    """
    tolerance = rounding(values)
    wide = weights.double()
    if bool(visible.all()):
        all_keys = visible.new_ones(1, 1, 1, weights.shape[-1])
        return _project(wide, values.double(), all_keys, tolerance, keep_sums)
    found = torch.empty_like(wide)
    for same in alike(visible):
        texts = slice(None) if len(same) == len(visible) else same
        found[texts] = _project_each(
            wide[texts], values.double()[texts], visible[texts][:1], tolerance, keep_sums
        )
    return found


def _project_each(
    weights: Attention, values: HeadValues, visible: Visible, tolerance: float, keep_sums: bool
) -> Attention:
    """Project rows that see keys of their own; `visible` is the same for the whole batch."""
    columns = _with_constant(values) if keep_sums else values
    mixed = Mixed(columns, visible, tolerance)
    found, left = project_rows(weights, mixed, _at_once(columns, columns.shape[-1] ** 2))
    shared, seen = values[:, :, None], visible.expand_as(weights)
    step = _at_once(values, values.shape[-2] * values.shape[-1])
    for start in range(0, len(left), step):
        rows = left[start : start + step]
        projected = _project(
            weights[:, :, rows, None], shared, seen[:, :, rows, None], tolerance, keep_sums
        )
        found[:, :, rows] = projected[:, :, :, 0]
    return found


def _with_constant(values: HeadValues) -> Tensor:
    """The values and a constant, about as large as they are."""
    keys, width = values.shape[-2:]
    size = values.square().sum(dim=(-2, -1), keepdim=True).div(keys * width).sqrt()
    return torch.cat([values, size.expand(*values.shape[:-1], 1)], dim=-1)


def _project(
    rows: Tensor, values: Tensor, visible: Tensor, tolerance: float, keep_sums: bool
) -> Tensor:
    """Project rows `[..., row, key]`, which see the same keys, on the values' column space."""
    seen = visible.transpose(-1, -2)
    within = centred(values, visible) if keep_sums else values * seen
    basis = column_basis(within, tolerance)
    found: Tensor = (rows @ basis) @ basis.transpose(-1, -2)
    count = visible.sum(dim=-1, keepdim=True)
    rank = (basis.square().sum(dim=-2) > 0.5).sum(dim=-1)[..., None, None]
    if keep_sums:
        rank = rank + 1
        found = found.add_(rows.sum(dim=-1, keepdim=True) / count.clamp_min(1))
    independent = rank >= count
    if bool(independent.any()):
        found = torch.where(independent, rows, found)
    return found.masked_fill_(~visible, 0)


@dataclass(frozen=True, eq=False)
class Mixed:
    """What rows of weights mix: columns over the keys, in float64, and which keys each row sees.

    `tolerance` is the share of the largest singular value that may be rounding.
    """

    columns: HeadValues  # `[batch, head, key, column]`
    visible: Visible  # `[1, 1 or head, query, key]`: all of the batch see alike
    tolerance: float

    @property
    def width(self) -> int:
        """The number of columns."""
        return self.columns.shape[-1]

    def sees(self, rows: range) -> tuple[Tensor, Tensor]:
        """The keys that all of these rows see, and those that some see."""
        seen = self.visible[:, :, rows.start : rows.stop].flatten(0, 2)
        return seen.all(dim=0), seen.any(dim=0)

    def stay(self, keys: Tensor) -> bool:
        """Whether the columns are certainly independent over these keys: rows over them stay."""
        own = self.columns[:, :, keys]
        tolerance = max(self.tolerance, LEAST_SQUARED)
        return bool(are_whole(own @ own.mT, tolerance).all())

    def products(self, rows: range) -> Tensor | None:
        """The inner products of the columns over what each row sees, `[…, row, column, column]`.

        None unless they are certainly independent for each of these rows.
        """
        every, some = self.sees(rows)
        own = self.columns[:, :, every]
        shared = own.mT @ own
        most = self.columns[:, :, some].square().sum(dim=(-2, -1))
        if not are_whole(shared, max(self.tolerance, LEAST_SOLVED), most).all():
            return None
        others = some & ~every
        apart = self.columns[:, :, others]
        outer = (apart[..., None] * apart[..., None, :]).flatten(-2)
        seen = self.visible[:, :, rows.start : rows.stop, others].to(outer)
        more: Tensor = (seen @ outer).unflatten(-1, shared.shape[-2:])
        return more.add_(shared[:, :, None])

    def project(self, weights: Attention, rows: range, products: Tensor) -> Tensor:
        """These rows of weights, each projected on the columns over what it sees."""
        factor = torch.linalg.cholesky_ex(products).L
        hidden = ~self.visible[:, :, rows.start : rows.stop]
        left = weights[:, :, rows.start : rows.stop].masked_fill(hidden, 0)
        found = torch.zeros_like(left)
        for _ in range(2):  # the second time takes what rounding has left of the first
            solved = torch.cholesky_solve((left @ self.columns)[..., None], factor)[..., 0]
            step = (solved @ self.columns.mT).masked_fill_(hidden, 0)
            found, left = found.add_(step), left.sub_(step)
        return found


def project_rows(weights: Attention, mixed: Mixed, at_once: int) -> tuple[Attention, list[int]]:
    """The rows projected on what they see, in float64, and the numbers of those left to be.

    At most so many rows are projected at once. A row whose columns are independent stays as it is.
    """
    found, left = weights.masked_fill(~mixed.visible, 0), []
    for rows, products in _parts(mixed, range(weights.shape[2]), max(1, at_once)):
        if products is not None:
            found[:, :, rows.start : rows.stop] = mixed.project(weights, rows, products)
        else:
            left.append(rows.start)
    return found, left


def _parts(mixed: Mixed, rows: range, most: int) -> Iterator[tuple[range, Tensor | None]]:
    """Ranges of rows with their inner products, or single rows without; not those that stay.

    What cannot be proven for a range is tried for its halves.
    """
    shared, seen = mixed.sees(rows)
    every, some = int(shared.sum()), int(seen.sum())
    if some == 0 or (some <= mixed.width and mixed.stay(seen)):
        return
    if every >= mixed.width and len(rows) <= most:
        products = mixed.products(rows)
        if products is not None:
            yield rows, products
            return
    if len(rows) == 1:
        yield rows, None
        return
    for half in (rows[: len(rows) // 2], rows[len(rows) // 2 :]):
        yield from _parts(mixed, half, most)


def alike(visible: Visible) -> Iterator[Tensor]:
    """The numbers of the texts of a batch, together those whose rows see the same keys."""
    left = torch.arange(len(visible), device=visible.device)
    while len(left):
        same = (visible[left] == visible[left[:1]]).flatten(1).all(dim=1)
        yield left[same]
        left = left[~same]


def _at_once(values: HeadValues, numbers: int) -> int:
    """How many rows are projected at once, if each takes so many numbers for each head."""
    each = 3 * 8 * numbers * values.shape[0] * values.shape[1]
    return max(1, BYTES_AT_ONCE.get(values.device.type, 2**28) // each)
