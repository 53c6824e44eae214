"""Projections of rows that see keys of their own: what is proven for many rows is proven once.

Rows of attention often see nearly the same keys: in a decoder, each sees one more than the row
before. Keys whose values are independent stay so among fewer keys; directions that the values of
some keys span, those of more keys span too.
"""

from collections.abc import Iterator
from dataclasses import dataclass

import torch
from torch import Tensor

from attlas.shapes import Attention, HeadValues, Visible

LEAST_SQUARED = 1e-7  # float64 cannot distinguish the squares of smaller tolerances
LEAST_SOLVED = 1e-5  # above it, two steps solve with squares as well as without


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


def are_whole(products: Tensor, tolerance: float, total: Tensor | None = None) -> Tensor:
    """For each matrix of inner products, whether all directions are certainly above rounding.

    A matrix minus a multiple of the identity has a Cholesky factor if all its eigenvalues are above
    that multiple. `total`, by default the trace, is at least the largest of them.
    """
    if total is None:
        total = products.diagonal(dim1=-2, dim2=-1).sum(dim=-1)
    floor = (tolerance**2 * total)[..., None, None]
    identity = torch.eye(products.shape[-1], dtype=products.dtype, device=products.device)
    factored: Tensor = torch.linalg.cholesky_ex(products - floor * identity).info == 0
    return factored & (total > 0)


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
