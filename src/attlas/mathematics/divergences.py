"""Divergences of distributions over the last axis, with natural logarithms and gradients.

A zero probability adds nothing to a sum and gets no gradient. Nothing is clipped, shifted or
normalised, so the arguments must be distributions already.
"""

import torch
from torch import Tensor

from attlas.shapes import Distributions


def entropy(p: Distributions) -> Tensor:
    """The entropy of each distribution, between 0 and the logarithm of its length."""
    return -(p * _log(p)).sum(dim=-1)


def kullback_leibler(p: Distributions, q: Distributions) -> Tensor:
    """The divergence of `q` from `p`; infinite if `q` is zero somewhere that `p` is not."""
    terms = p * (_log(p) - _log(q))
    return terms.masked_fill((p > 0) & (q == 0), torch.inf).sum(dim=-1)


def jensen_shannon(p: Distributions, q: Distributions) -> Tensor:
    """The mean divergence of the two from their mixture; at most ln 2, about 0.693."""
    mixture = (p + q) / 2
    return (kullback_leibler(p, mixture) + kullback_leibler(q, mixture)) / 2


def total_variation(p: Distributions, q: Distributions) -> Tensor:
    """Half the sum of absolute differences; at most 1. For (a, 1 − a) and (b, 1 − b): |a − b|."""
    return (p - q).abs().sum(dim=-1) / 2


def largest_jensen_shannon(p: Distributions) -> Tensor:
    """The largest divergence of any distribution from `p`: all mass where `p` has least.

    It is less than ln 2 unless `p` is zero somewhere; pass only the outcomes that may be chosen.
    """
    least = torch.nn.functional.one_hot(p.argmin(dim=-1), p.shape[-1])
    return jensen_shannon(p, least.to(p))


def _log(p: Tensor) -> Tensor:
    """The logarithm, or zero if p is zero: otherwise its gradient would be infinite."""
    return torch.where(p == 0, 1, p).log()
