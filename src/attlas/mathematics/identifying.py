"""Whether attention can be inferred from its output: ranks, and how similar vectors are.

Different rows of weights give the same output if their difference is in the null space of the
values. Of these, a model can only produce the rows that some query produces with its keys.
"""

import torch
from torch import Tensor

from attlas.mathematics.null_space import centred, ranks, rounding, singular_values
from attlas.shapes import HeadKeys, HeadRanks, HeadValues, OneRowSees, OneRowWeighs


def nullities(values: HeadValues, visible: OneRowSees) -> tuple[HeadRanks, HeadRanks, HeadRanks]:
    """The rank of the values that a row sees, their nullity, and the nullity with sums kept.

    The precision of the values decides what counts as rounding.
    """
    tolerance = rounding(values)
    count = visible.sum(dim=-1)[..., 0]
    rank = ranks(values, visible, tolerance)
    around = ranks(centred(values.double(), visible), visible, tolerance)
    return rank, count - rank, (count - around - 1).clamp_min(0)


def query_ranks(
    weights: OneRowWeighs, values: HeadValues, keys: HeadKeys, visible: OneRowSees
) -> tuple[HeadRanks, HeadRanks]:
    """In how many directions the output changes with the query, and in how many the weights can.

    If the two are equal, no query nearby gives the same output with other weights. The derivative
    of the weights by the query is `(diag a − a aᵀ) K`, and that of the output is `Vᵀ` times it;
    position biases do not change it, but a cap on the scores would.
    """
    row = weights.double().transpose(-1, -2)
    around = keys.double() - weights.double() @ keys.double()
    moved = values.double().transpose(-1, -2) @ (row * around)
    singular = singular_values(moved)
    nonzero = singular > rounding(values) * singular.amax(dim=-1, keepdim=True)
    free = ranks(centred(keys.double(), visible), visible, rounding(keys))
    return nonzero.sum(dim=-1), free


def longest_identifiable(width: int) -> int:
    """The most keys for which weights that sum to one can be inferred from the output."""
    return width + 1


def conicity(vectors: HeadValues) -> Tensor:
    """The mean cosine of vectors with their mean: 1 if all point one way, about 0 if random."""
    wide = vectors.double()
    unit = torch.nn.functional.normalize(wide, dim=-1)
    mean = torch.nn.functional.normalize(wide.mean(dim=-2, keepdim=True), dim=-1)
    return (unit * mean).sum(dim=-1).mean(dim=-1)


def condition(vectors: HeadValues) -> Tensor:
    """The largest singular value divided by the smallest, limited by the vectors' precision.

    It is far above 1 if some vectors are nearly sums of others.
    """
    singular = singular_values(vectors.double())
    most = 1 / torch.finfo(vectors.dtype).eps
    ratio: Tensor = singular[..., 0] / singular[..., -1].clamp_min(torch.finfo(singular.dtype).tiny)
    return ratio.clamp_max(most)
