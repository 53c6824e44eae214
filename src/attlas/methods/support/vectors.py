"""A number for each token from its vectors, computed in float32 or float64."""

import torch

from attlas.shapes import SharedVectors, TokenScores, Vectors


def lengths(vectors: Vectors) -> TokenScores:
    """The length (L2 norm) of each token's vector."""
    return wide(vectors).square().sum(dim=-1).sqrt()


def inner_products(first: SharedVectors, second: SharedVectors) -> TokenScores:
    """The inner product of each token's two vectors; the vectors of one input serve every row."""
    return (wide(first) * wide(second)).sum(dim=-1)


def wide(vectors: Vectors) -> Vectors:
    """The vectors in float32, or in float64 if they are already."""
    return vectors if vectors.dtype == torch.float64 else vectors.float()
