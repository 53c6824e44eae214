"""The space that the values of keys span: its directions, and how many there are.

Everything is computed in float64.
"""

import torch
from torch import Tensor

from attlas.shapes import HeadRanks, HeadValues, OneRowSees

LEAST_SQUARED = 1e-7  # float64 cannot distinguish the squares of smaller tolerances
SMALL = 100.0  # a larger ratio of directions needs a correction step


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
