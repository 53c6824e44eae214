"""Kendall's τ of two scores on each of many texts at once, with the p-value that scipy gives it.

Texts of different lengths are padded to one array, with marks of the tokens that count.
"""

from dataclasses import dataclass
from functools import lru_cache
from math import factorial

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfc
from torch import Tensor

from attlas.shapes import PaddedMarks, PaddedRows, TextValues

LONGEST_EXACT = 33  # tokens: beyond them, scipy takes the normal approximation
SIGNIFICANT = 0.05


@dataclass(frozen=True, eq=False)
class RankAgreement:
    """τ-b and its two-sided p-value for each text; NaN where all scores of a text are equal."""

    tau: TextValues
    p_value: TextValues

    @property
    def significant(self) -> TextValues:
        """Whether the p-value is at most 0.05, as 0 or 1; NaN where τ is."""
        return np.where(np.isnan(self.tau), np.nan, self.p_value <= SIGNIFICANT)


def kendall_by_text(first: PaddedRows, second: PaddedRows, counted: PaddedMarks) -> RankAgreement:
    """Kendall's τ-b of the counted tokens of each text."""
    pairs = counted[:, :, None] & counted[:, None, :]
    above, other = (_order(scores, pairs) for scores in (first, second))
    agree = _array((above * other).sum(dim=(1, 2))) / 2
    size = _array(counted.sum(dim=1))
    ties = [_Ties.of(scores, pairs, counted) for scores in (first, second)]
    every = size * (size - 1) / 2
    with np.errstate(invalid="ignore", divide="ignore"):
        tau = agree / np.sqrt((every - ties[0].pairs) * (every - ties[1].pairs))
    p_value = _approximate(agree, size, *ties)
    untied = (ties[0].pairs == 0) & (ties[1].pairs == 0) & (size > 1)
    fewer = np.minimum(every - agree, every + agree) / 2
    for text in np.flatnonzero(untied & ((size <= LONGEST_EXACT) | (fewer <= 1))):
        p_value[text] = _exact(int(size[text]), int(fewer[text]))
    return RankAgreement(tau, np.where(np.isnan(tau), np.nan, p_value))


@dataclass(frozen=True, eq=False)
class _Ties:
    """Sums over the groups of equal scores, of t tokens each, by which ties change the variance."""

    pairs: TextValues  # t (t − 1) / 2
    triples: TextValues  # t (t − 1) (t − 2)
    spread: TextValues  # t (t − 1) (2 t + 5)

    @classmethod
    def of(cls, scores: PaddedRows, pairs: Tensor, counted: PaddedMarks) -> "_Ties":
        equal = _array(((scores[:, :, None] == scores[:, None, :]) & pairs).sum(dim=2))
        # Every token of a group adds its share, so the sum over a group is divided by t.
        counts = np.where(_array(counted) > 0, equal, 1.0)
        return cls(
            ((counts - 1) / 2).sum(axis=1),
            ((counts - 1) * (counts - 2)).sum(axis=1),
            ((counts - 1) * (2 * counts + 5)).sum(axis=1),
        )


def _approximate(agree: TextValues, size: TextValues, first: _Ties, second: _Ties) -> TextValues:
    """The p-value by the normal distribution, with the variance under ties."""
    ordered = size * (size - 1)
    with np.errstate(invalid="ignore", divide="ignore"):
        variance = (
            (ordered * (2 * size + 5) - first.spread - second.spread) / 18
            + 2 * first.pairs * second.pairs / ordered
            + first.triples * second.triples / (9 * ordered * (size - 2))
        )
        found: TextValues = erfc(np.abs(agree) / np.sqrt(variance) / np.sqrt(2))
    return found


def _exact(size: int, inversions: int) -> float:
    """Twice the chance that a random order has no more inversions than these."""
    if inversions <= 1:  # the only counts of long texts
        return min(1.0, 2 * (1 if inversions == 0 else size) / factorial(size))
    return min(1.0, 2 * float(_inversions(size)[: inversions + 1].sum()))


@lru_cache(maxsize=LONGEST_EXACT)
def _inversions(size: int) -> NDArray[np.float64]:
    """The share of all orders that have 0, 1, 2, … inversions."""
    shares = np.ones(1)
    for place in range(2, size + 1):
        # The next item comes before 0 to place − 1 of the others, each with the same chance.
        shares = np.convolve(shares, np.full(place, 1 / place))
    return shares


def _order(scores: PaddedRows, pairs: Tensor) -> Tensor:
    return (scores[:, :, None] - scores[:, None, :]).sign() * pairs


def _array(values: Tensor) -> NDArray[np.float64]:
    return values.detach().double().cpu().numpy()
