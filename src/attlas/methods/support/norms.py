"""Norms of what each key adds to each query, without the vectors themselves being there."""

import torch
from torch import Tensor

from attlas.shapes import Attention, BatchScores, HeadMean, HeadVectors, Vectors

TINY = 1e-30  # a position that nothing is added to has mixed nothing


def norms_of_sums(weights: Attention, vectors: HeadVectors) -> HeadMean:
    """The norm, over heads summed, of each weight times its key's vector.

    The vectors of n² pairs would be large: the inner products between the heads of each key say it
    all. In float64, as heads that cancel each other leave little of large squares.
    """
    wide, heads = vectors.double(), weights.double()
    products = torch.einsum("bhkf,bgkf->bkhg", wide, wide)
    halfway = torch.einsum("bhqk,bkhg->bgqk", heads, products)
    return (halfway * heads).sum(dim=1).clamp_min(0).sqrt().to(weights.dtype)


def norms_of_heads(weights: Attention, vectors: HeadVectors) -> Attention:
    """The norm of each weight times its key's vector, head by head."""
    sizes: Tensor = vectors.norm(dim=-1)
    return weights * sizes[:, :, None, :]


def mixing_ratio(others: Vectors, own: Vectors) -> BatchScores:
    """How much of a position comes from others: 0 nothing, 1 all; the mean over positions.

    `others` is the sum of what the others add to each position, `own` what it brings itself.
    """
    sizes: Tensor = others.norm(dim=-1)
    total: Tensor = (sizes + own.norm(dim=-1)).clamp_min(TINY)
    return (sizes / total).mean(dim=-1)
