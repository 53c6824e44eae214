"""The null space of values: the component of attention weights that changes no output.

A row of weights over its visible keys is the sum of a component in the column space of their values
and a component in the null space. Everything is computed in float64.
"""

import torch
from torch import Tensor

from attlas.mathematics.nested_rows import LEAST_SQUARED, Mixed, alike, are_whole, project_rows
from attlas.shapes import Attention, HeadRanks, HeadValues, OneRowSees, Visible

BYTES_AT_ONCE = {"cpu": 2**23, "cuda": 2**30}  # a CPU is fast on what fits its cache
SMALL = 100.0  # a larger ratio of directions needs a correction step


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


def ranks(values: HeadValues, visible: OneRowSees, tolerance: float) -> HeadRanks:
    """The rank of the values of the keys that a row may see.

    Singular values below the share `tolerance` of the largest one count as zero.
    """
    matrices = values.double() * _column(visible)
    count = visible.sum(dim=-1)[..., 0].expand(matrices.shape[:-2])
    found = count.clamp_max(matrices.shape[-1])
    whole = _are_independent(matrices, visible, max(tolerance, LEAST_SQUARED))
    if not bool(whole.all()):
        singular = singular_values(matrices[~whole])
        found[~whole] = _counted(singular, tolerance).sum(dim=-1)
    return found


def singular_values(matrices: Tensor) -> Tensor:
    """The singular values of many small matrices; a GPU would find them one at a time."""
    found: Tensor = torch.linalg.svdvals(matrices.cpu())
    return found.to(matrices.device)


def _are_independent(matrices: Tensor, visible: OneRowSees, tolerance: float) -> Tensor:
    """Whether the visible rows of each matrix, or its columns, are certainly independent."""
    turned = matrices.transpose(-1, -2)
    keys, width = matrices.shape[-2:]
    few = torch.zeros(matrices.shape[:-2], dtype=torch.bool, device=matrices.device)
    if keys < width or not bool(visible.all()):
        products = matrices @ turned
        total = products.diagonal(dim1=-2, dim2=-1).sum(dim=-1)
        # Each hidden row stands for a direction of its own, which is not counted.
        hidden = torch.diag_embed((~visible[..., 0, :]).double() * total[..., None])
        few = are_whole(products + hidden, tolerance, total)
    return few if keys < width else few | are_whole(turned @ matrices, tolerance)


def centred(values: HeadValues, visible: OneRowSees) -> HeadValues:
    """The values minus their mean over the keys that a row may see.

    Together with the constant vector they span the same space as the values with that vector.
    """
    seen = _column(visible).to(values)
    mean = (values * seen).sum(dim=-2, keepdim=True) / seen.sum(dim=-2, keepdim=True).clamp_min(1)
    return (values - mean) * seen


def rounding(values: HeadValues, dtype: torch.dtype | None = None) -> float:
    """The share of the largest singular value that may come from rounding in this precision."""
    keys, width = values.shape[-2:]
    eps = torch.finfo(dtype or values.dtype).eps
    if eps < 1e-6:
        return max(keys, width) * eps
    # In half precision sums are taken in float32, so each number is rounded only once.
    return float(eps / 2 * min(keys, width) ** 0.5)


def _project(
    rows: Tensor, values: Tensor, visible: Tensor, tolerance: float, keep_sums: bool
) -> Tensor:
    """Project rows `[..., row, key]`, which see the same keys, on the values' column space."""
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
    """Orthonormal columns with the span of each matrix, and columns of zeros beyond its rank."""
    if tolerance < LEAST_SQUARED:
        left, singular, _ = torch.linalg.svd(matrices, full_matrices=False)
        return _without(left, ~_counted(singular, tolerance))
    return _basis_from_products(matrices, tolerance)


def _basis_from_products(matrices: Tensor, tolerance: float) -> Tensor:
    """Like `column_basis`, from inner products: one small symmetric problem for each matrix.

    GPUs solve many of these at once, but singular value problems one at a time. If no direction can
    be rounding, no eigenvalues are needed at all.
    """
    keys, width = matrices.shape[-2:]
    turned = matrices.transpose(-1, -2)
    if keys <= width:
        squares, vectors = torch.linalg.eigh(matrices @ turned)
        return _without(vectors, ~_counted(squares.clamp_min(0).sqrt(), tolerance))
    products = turned @ matrices
    whole = are_whole(products, tolerance)
    if bool(whole.all()):
        return _orthonormal(_orthonormal(matrices))
    basis = torch.empty_like(matrices)
    basis[whole] = _orthonormal(_orthonormal(matrices[whole]))
    basis[~whole] = _basis_from_eigenvalues(matrices[~whole], products[~whole], tolerance)
    return basis


def _orthonormal(matrices: Tensor) -> Tensor:
    """Columns with the same span, closer to orthonormal; applied twice, they are orthonormal."""
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
    # One step towards orthonormal columns: squaring loses precision in small directions.
    return 1.5 * basis - 0.5 * basis @ (basis.transpose(-1, -2) @ basis)


def _counted(singular: Tensor, tolerance: float) -> Tensor:
    """Which singular values are above rounding."""
    most: Tensor = singular.amax(dim=-1, keepdim=True)
    return singular > tolerance * most


def _without(vectors: Tensor, dropped: Tensor) -> Tensor:
    """The vectors with the dropped columns set to zero."""
    return vectors.masked_fill(dropped[..., None, :], 0)


def _column(visible: Tensor) -> Tensor:
    """The visible keys of one row as a factor for its values: `[..., key, 1]`."""
    return visible.transpose(-1, -2)


def _at_once(values: HeadValues, numbers: int) -> int:
    """How many rows are projected at once, if each takes so many numbers for each head."""
    each = 3 * 8 * numbers * values.shape[0] * values.shape[1]
    return max(1, BYTES_AT_ONCE.get(values.device.type, 2**28) // each)
