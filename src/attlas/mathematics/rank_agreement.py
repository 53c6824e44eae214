"""How similarly two scores, or every two methods, order tokens.

Equal scores say nothing about the order of their tokens. Kendall's and Spearman's correlations
account for ties (τ-b, mean ranks) and are NaN if all scores are equal. The overlaps are expected
values with ties broken at random.
"""

from collections.abc import Callable

import numpy as np
from numpy.typing import NDArray
from scipy.stats import rankdata

from attlas.errors import UsageError
from attlas.shapes import MethodPairs, MethodScores, TokenVector

PERSISTENCE = 0.9  # of rank-biased overlap: the first ten ranks have 86 % of the weight


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
