"""The null space of values: the part of attention weights that the mixed values do not depend on.

A row of weights over the keys it may see falls into a part in the column space of their values and
a part that the values take to nothing. All of it is computed in float64.
"""

from collections.abc import Iterator

import torch
from torch import Tensor

from attlas.shapes import Attention, HeadRanks, HeadValues, OneRowSees, Visible

BYTES_AT_ONCE = {"cpu": 2**23, "cuda": 2**30}  # a processor is fast on what fits its cache
LEAST_SQUARED = 1e-7  # below it, the squares of what is to be told apart do not fit float64
SMALL = 100.0  # how much larger the largest direction may be before a step of care is needed


def effective_part(
    weights: Attention, values: HeadValues, visible: Visible, *, keep_sums: bool = False
) -> Attention:
    """The weights without the part that the values take to nothing, in float64.

    Each row is projected on the column space of the values it may see, and is nothing elsewhere;
    a row whose values are independent stays as it is. With `keep_sums` the part that is taken away
    also sums to zero. The precision of `values` says which of their directions are rounding.
    """
    tolerance = rounding(values)
    wide, seen = weights.double(), visible.expand_as(weights)
    if bool(visible.all()):
        all_keys = visible.new_ones(1, 1, 1, weights.shape[-1])
        return _project(wide, values.double(), all_keys, tolerance, keep_sums)
    found = torch.zeros_like(wide)
    shared = values.double()[:, :, None]
    for rows in _chunks(shared, wide.shape[2]):
        part = _project(
            wide[:, :, rows, None], shared, seen[:, :, rows, None], tolerance, keep_sums
        )
        found[:, :, rows] = part[:, :, :, 0]
    return found


def ranks(values: HeadValues, visible: OneRowSees, tolerance: float) -> HeadRanks:
    """How many directions the values of the keys that a row may see span.

    `tolerance` is the share of the largest singular value below which one counts as nothing.
    """
    matrices = values.double() * _column(visible)
    turned = matrices.transpose(-1, -2)
    keys, width = matrices.shape[-2:]
    products = matrices @ turned if keys < width else turned @ matrices
    whole = _is_whole(products, max(tolerance, LEAST_SQUARED))
    found = torch.full_like(whole, min(keys, width), dtype=torch.long)
    if not bool(whole.all()):
        singular = torch.linalg.svdvals(matrices[~whole])
        found[~whole] = _counted(singular, tolerance).sum(dim=-1)
    return found


def centred(values: HeadValues, visible: OneRowSees) -> HeadValues:
    """The values without their mean over the keys that a row may see.

    With the constant vector they span what the values and the constant vector span together.
    """
    seen = _column(visible).to(values)
    mean = (values * seen).sum(dim=-2, keepdim=True) / seen.sum(dim=-2, keepdim=True).clamp_min(1)
    return (values - mean) * seen


def rounding(values: HeadValues, dtype: torch.dtype | None = None) -> float:
    """The share of the largest singular value that rounding in a precision may amount to."""
    keys, width = values.shape[-2:]
    eps = torch.finfo(dtype or values.dtype).eps
    if eps < 1e-6:
        return max(keys, width) * eps
    # Half precision rounds sums that were taken in float32: each number once, not once a term.
    return float(eps / 2 * min(keys, width) ** 0.5)


def _project(
    rows: Tensor, values: Tensor, visible: Tensor, tolerance: float, keep_sums: bool
) -> Tensor:
    """Rows `[..., row, key]` on the column space of `[..., key, width]`, all seeing the same."""
    seen = _column(visible)
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


def column_basis(matrices: Tensor, tolerance: float) -> Tensor:
    """Orthonormal columns that span those of each matrix, and columns of zeros beyond its rank."""
    if tolerance < LEAST_SQUARED:
        left, singular, _ = torch.linalg.svd(matrices, full_matrices=False)
        return _without(left, ~_counted(singular, tolerance))
    return _basis_from_products(matrices, tolerance)


def _basis_from_products(matrices: Tensor, tolerance: float) -> Tensor:
    """As `column_basis`, from inner products: one small symmetric problem for each matrix.

    Devices solve many of these at once, where they take one singular value problem at a time; and
    where no direction can be rounding, no eigenvalues are needed at all.
    """
    keys, width = matrices.shape[-2:]
    turned = matrices.transpose(-1, -2)
    if keys <= width:
        squares, vectors = torch.linalg.eigh(matrices @ turned)
        return _without(vectors, ~_counted(squares.clamp_min(0).sqrt(), tolerance))
    products = turned @ matrices
    whole = _is_whole(products, tolerance)
    if bool(whole.all()):
        return _orthonormal(_orthonormal(matrices))
    basis = torch.empty_like(matrices)
    basis[whole] = _orthonormal(_orthonormal(matrices[whole]))
    basis[~whole] = _basis_from_eigenvalues(matrices[~whole], products[~whole], tolerance)
    return basis


def _is_whole(products: Tensor, tolerance: float) -> Tensor:
    """Whether all directions are surely more than rounding, of each matrix of inner products.

    A matrix less a multiple of the identity has a Cholesky factor if all its eigenvalues are above
    that multiple; their sum is no smaller than the largest of them.
    """
    total = products.diagonal(dim1=-2, dim2=-1).sum(dim=-1)
    floor = (tolerance**2 * total)[..., None, None]
    identity = torch.eye(products.shape[-1], dtype=products.dtype, device=products.device)
    factored: Tensor = torch.linalg.cholesky_ex(products - floor * identity).info == 0
    return factored & (total > 0)


def _orthonormal(matrices: Tensor) -> Tensor:
    """Columns that span the same, nearer to orthonormal; twice, they are to the last bits."""
    products = matrices.transpose(-1, -2) @ matrices
    factor = torch.linalg.cholesky_ex(products).L
    found: Tensor = torch.linalg.solve_triangular(factor.mT, matrices, upper=True, left=False)
    return found


def _basis_from_eigenvalues(matrices: Tensor, products: Tensor, tolerance: float) -> Tensor:
    squares, vectors = torch.linalg.eigh(products)
    singular = squares.clamp_min(0).sqrt()
    counted = _counted(singular, tolerance)
    scale = torch.where(counted, singular, torch.inf).reciprocal()
    basis: Tensor = matrices @ (vectors * scale[..., None, :])
    if bool((scale * singular.amax(dim=-1, keepdim=True) < SMALL).all()):
        return basis
    # A step towards orthonormal columns: small directions come out of squares with less precision.
    return 1.5 * basis - 0.5 * basis @ (basis.transpose(-1, -2) @ basis)


def _counted(singular: Tensor, tolerance: float) -> Tensor:
    """Which singular values are more than rounding."""
    most: Tensor = singular.amax(dim=-1, keepdim=True)
    return singular > tolerance * most


def _without(vectors: Tensor, dropped: Tensor) -> Tensor:
    """The columns with some of them zero."""
    return vectors.masked_fill(dropped[..., None, :], 0)


def _column(visible: Tensor) -> Tensor:
    """What one row may see, as a factor for the rows of its values: `[..., key, 1]`."""
    return visible.transpose(-1, -2)


def _chunks(values: Tensor, rows: int) -> Iterator[slice]:
    """Rows whose values may be there at once, a copy for each."""
    each = 3 * 8 * values.numel()
    step = max(1, BYTES_AT_ONCE.get(values.device.type, 2**28) // each)
    for start in range(0, rows, step):
        yield slice(start, start + step)
