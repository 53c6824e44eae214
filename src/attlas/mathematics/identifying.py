"""What attention can be told from what it mixes: ranks, and how near to one line vectors are.

Several rows of weights may give one output: those that differ by what the values take to nothing.
Of these, a model can make only the rows that some query makes with its keys.
"""

import torch
from torch import Tensor

from attlas.mathematics.null_space import centred, ranks, rounding
from attlas.shapes import HeadKeys, HeadRanks, HeadValues, OneRowSees, OneRowWeighs


def nullities(values: HeadValues, visible: OneRowSees) -> tuple[HeadRanks, HeadRanks, HeadRanks]:
    """The rank of the values that a row sees, and how many dimensions its weights are free in.

    The last is with the sum of the weights kept. What counts as rounding is said by the precision
    of the values.
    """
    tolerance = rounding(values)
    count = visible.sum(dim=-1)[..., 0]
    rank = ranks(values, visible, tolerance)
    around = ranks(centred(values.double(), visible), visible, tolerance)
    return rank, count - rank, (count - around - 1).clamp_min(0)


def query_ranks(
    weights: OneRowWeighs, values: HeadValues, keys: HeadKeys, visible: OneRowSees
) -> tuple[HeadRanks, HeadRanks]:
    """In how many directions the output moves with the query, and in how many the weights can.

    Where the two are equal, no other query nearby gives the same output with other weights. The
    weights move with the query by `(diag a − a aᵀ) K`, the output by `Vᵀ` of that; position biases
    are no part of it, a cap on the scores would be.
    """
    row = weights.double().transpose(-1, -2)
    around = keys.double() - weights.double() @ keys.double()
    moved = values.double().transpose(-1, -2) @ (row * around)
    singular = torch.linalg.svdvals(moved)
    found = singular > rounding(values) * singular.amax(dim=-1, keepdim=True)
    free = ranks(centred(keys.double(), visible), visible, rounding(keys))
    return found.sum(dim=-1), free


def longest_identifiable(width: int) -> int:
    """Beyond how many keys no row of weights that sum to one can be told from its output."""
    return width + 1


def conicity(vectors: HeadValues) -> Tensor:
    """The mean cosine of vectors with their mean: 1 where all point one way, about 0 where none."""
    wide = vectors.double()
    unit = torch.nn.functional.normalize(wide, dim=-1)
    mean = torch.nn.functional.normalize(wide.mean(dim=-2, keepdim=True), dim=-1)
    return (unit * mean).sum(dim=-1).mean(dim=-1)


def condition(vectors: HeadValues) -> Tensor:
    """The largest singular value over the smallest, no more than the vectors' precision can tell.

    Far above 1 where some vectors are nearly sums of others.
    """
    singular = torch.linalg.svdvals(vectors.double())
    most = 1 / torch.finfo(vectors.dtype).eps
    ratio: Tensor = singular[..., 0] / singular[..., -1].clamp_min(torch.finfo(singular.dtype).tiny)
    return ratio.clamp_max(most)
