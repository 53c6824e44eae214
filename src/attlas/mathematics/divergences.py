"""How far apart distributions are: over the last axis, natural logarithms, gradients kept.

What has no probability adds nothing to a sum and takes no gradient; nothing is clipped, shifted or
normalised, so what is handed in must be distributions already.
"""

import torch
from torch import Tensor

from attlas.shapes import Distributions


def entropy(p: Distributions) -> Tensor:
    """The entropy of each distribution, between 0 and the logarithm of its length."""
    return -(p * _log(p)).sum(dim=-1)


def kullback_leibler(p: Distributions, q: Distributions) -> Tensor:
    """What is lost by taking `q` for `p`; infinite where `q` rules out what `p` allows."""
    terms = p * (_log(p) - _log(q))
    return terms.masked_fill((p > 0) & (q == 0), torch.inf).sum(dim=-1)


def jensen_shannon(p: Distributions, q: Distributions) -> Tensor:
    """The mean divergence of the two from their mixture: at most ln 2, about 0.693."""
    mixture = (p + q) / 2
    return (kullback_leibler(p, mixture) + kullback_leibler(q, mixture)) / 2


def total_variation(p: Distributions, q: Distributions) -> Tensor:
    """Half the sum of the differences: at most 1, and |a − b| for (a, 1 − a) and (b, 1 − b)."""
    return (p - q).abs().sum(dim=-1) / 2


def largest_jensen_shannon(p: Distributions) -> Tensor:
    """The most that any distribution can be from `p`: all of it where `p` has least.

    Less than ln 2 unless `p` leaves something out; give only what may be chosen.
    """
    least = torch.nn.functional.one_hot(p.argmin(dim=-1), p.shape[-1])
    return jensen_shannon(p, least.to(p))


def _log(p: Tensor) -> Tensor:
    """The logarithm, and zero where there is none: its gradient would spoil the others'."""
    return torch.where(p == 0, 1, p).log()
