"""How similarly two scores, or every two methods, order tokens; and two scores on many texts.

Equal scores say nothing about the order of their tokens. Kendall's and Spearman's correlations
account for ties (τ-b, mean ranks) and are NaN if all scores are equal. The overlaps are expected
values with ties broken at random. Texts of different lengths that are compared at once are padded
to one array, with marks of the tokens that count.
"""

from collections.abc import Callable
from dataclasses import dataclass
from functools import lru_cache
from math import factorial

import numpy as np
from numpy.typing import NDArray
from scipy.special import erfc
from scipy.stats import rankdata
from torch import Tensor

from attlas.errors import UsageError
from attlas.shapes import (
    MethodPairs,
    MethodScores,
    PaddedMarks,
    PaddedRows,
    TextValues,
    TokenVector,
)

PERSISTENCE = 0.9  # of rank-biased overlap: the first ten ranks have 86 % of the weight
LONGEST_EXACT = 33  # tokens: beyond them, scipy takes the normal approximation
SIGNIFICANT = 0.05


def kendall(first: TokenVector, second: TokenVector) -> float:
    """Kendall's τ-b: the share of pairs in the same order minus that in the opposite one."""
    return _of_two(kendall_matrix, first, second)


def spearman(first: TokenVector, second: TokenVector) -> float:
    """Spearman's ρ: the correlation of the ranks; tied tokens get their mean rank."""
    return _of_two(spearman_matrix, first, second)


def top_overlap(first: TokenVector, second: TokenVector, count: int) -> float:
    """The share of the `count` highest tokens that the two have in common."""
    return _of_two(lambda scores: top_overlap_matrix(scores, count), first, second)


def rank_biased_overlap(first: TokenVector, second: TokenVector) -> float:
    """Extrapolated rank-biased overlap: overlaps at all depths, the top weighing most; 0 to 1.

    Webber, Moffat and Zobel, "A Similarity Measure for Indefinite Rankings", TOIS 2010.
    """
    return _of_two(rank_biased_overlap_matrix, first, second)


def kendall_matrix(scores: MethodScores) -> MethodPairs:
    """Kendall's τ-b of every two methods."""
    alike = np.zeros((len(scores), len(scores)))
    for token in range(scores.shape[1]):
        above = np.sign(scores[:, token, None] - scores[:, token + 1 :])
        alike += above @ above.T
    return _normalised(alike)


def spearman_matrix(scores: MethodScores) -> MethodPairs:
    """Spearman's ρ of every two methods."""
    ranks = rankdata(scores, axis=1) - (scores.shape[1] + 1) / 2
    return _normalised(ranks @ ranks.T)


def top_overlap_matrix(scores: MethodScores, count: int) -> MethodPairs:
    """The overlap of the highest tokens of every two methods."""
    tokens = scores.shape[1]
    if not 1 <= count <= tokens:
        raise UsageError(f"the top {count} of {tokens} tokens: 1 to {tokens} are allowed")
    among = _chances(scores)(count)
    overlap: MethodPairs = among @ among.T / count
    return overlap


def rank_biased_overlap_matrix(scores: MethodScores) -> MethodPairs:
    """The rank-biased overlap of every two methods."""
    tokens, chances = scores.shape[1], _chances(scores)
    total, overlap = np.zeros((len(scores), len(scores))), np.zeros(())
    for depth in range(1, tokens + 1):
        among = chances(depth)
        overlap = among @ among.T / depth
        total += overlap * PERSISTENCE**depth
    # Beyond the last token the overlap is assumed to stay the same.
    rest: MethodPairs = overlap * PERSISTENCE**tokens
    return rest + total * (1 - PERSISTENCE) / PERSISTENCE


def _chances(scores: MethodScores) -> Callable[[int], NDArray[np.float64]]:
    """The probability of each token to be among the highest, with ties broken at random."""
    above = rankdata(-scores, method="min", axis=1) - 1
    tied = rankdata(-scores, method="max", axis=1) - above
    return lambda depth: np.clip((depth - above) / tied, 0.0, 1.0)


def _normalised(products: MethodPairs) -> MethodPairs:
    """Inner products divided by both lengths; NaN if a length is zero."""
    size = np.sqrt(np.diagonal(products))
    norms = np.outer(size, size)
    return products / np.where(norms > 0, norms, np.nan)


def _of_two(
    matrix: Callable[[MethodScores], MethodPairs], first: TokenVector, second: TokenVector
) -> float:
    return float(matrix(np.stack([first, second]).astype(np.float64))[0, 1])


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
