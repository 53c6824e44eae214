"""How alike the orders are that scores put tokens in: of two scores, or of every two methods.

Scores that are equal say nothing of the order of their tokens. Kendall's and Spearman's
correlations have their own terms for ties (τ-b, mean ranks) and are not a number where all scores
are equal; the overlaps are what they come to on average when each side breaks its ties at random.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from attlas.errors import UsageError
from attlas.shapes import MethodPairs, MethodScores, TokenVector

PERSISTENCE = 0.9  # of a reader of ranks: 86 % of the weight lies on the first ten


def kendall(first: TokenVector, second: TokenVector) -> float:
    """Kendall's τ-b: pairs in the same order less pairs in the other, as a share; −1 to 1."""
    return _of_two(kendall_matrix, first, second)


def spearman(first: TokenVector, second: TokenVector) -> float:
    """Spearman's ρ: the correlation of the ranks, tied tokens having the mean of theirs."""
    return _of_two(spearman_matrix, first, second)


def top_overlap(first: TokenVector, second: TokenVector, count: int) -> float:
    """The share of the `count` tokens from the top that the two have in common."""
    return _of_two(lambda scores: top_overlap_matrix(scores, count), first, second)


def rank_biased_overlap(first: TokenVector, second: TokenVector) -> float:
    """Rank-biased overlap, extrapolated: overlaps at every depth, the top weighing most; 0 to 1.

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
    """The overlap of the top of every two methods."""
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
    # Beyond the last token the overlap is taken to stay what it was there.
    rest: MethodPairs = overlap * PERSISTENCE**tokens
    return rest + total * (1 - PERSISTENCE) / PERSISTENCE


def _chances(scores: MethodScores) -> Callable[[int], NDArray[np.float64]]:
    """How likely each token is among the top when ties are broken at random, by depth."""
    above = rankdata(-scores, method="min", axis=1) - 1
    tied = rankdata(-scores, method="max", axis=1) - above
    return lambda depth: np.clip((depth - above) / tied, 0.0, 1.0)


def _normalised(products: MethodPairs) -> MethodPairs:
    """Sums of products over the roots of those with themselves; no number where one is zero."""
    size = np.sqrt(np.diagonal(products))
    norms = np.outer(size, size)
    return products / np.where(norms > 0, norms, np.nan)


def _of_two(
    matrix: Callable[[MethodScores], MethodPairs], first: TokenVector, second: TokenVector
) -> float:
    return float(matrix(np.stack([first, second]).astype(np.float64))[0, 1])
