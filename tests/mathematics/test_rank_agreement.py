"""Agreement: against scipy, by hand, and over every order of the ties."""

from itertools import permutations, product

import numpy as np
import pytest
from scipy.stats import kendalltau, spearmanr

from attlas.errors import UsageError
from attlas.mathematics.rank_agreement import (
    PERSISTENCE,
    kendall,
    kendall_matrix,
    rank_biased_overlap,
    rank_biased_overlap_matrix,
    spearman,
    spearman_matrix,
    top_overlap,
    top_overlap_matrix,
)


def vectors(seed, levels, tokens=9):
    return np.random.default_rng(seed).integers(levels, size=(2, tokens)).astype(float)


@pytest.mark.parametrize("levels", [3, 6, 1000])
@pytest.mark.parametrize("seed", range(10))
def test_correlations_are_scipys_with_and_without_ties(seed, levels):
    a, b = vectors(seed, levels)
    assert kendall(a, b) == pytest.approx(kendalltau(a, b).statistic, abs=1e-12)
    assert spearman(a, b) == pytest.approx(spearmanr(a, b).statistic, abs=1e-12)


def test_kendall_by_hand():
    # Of three pairs two stand the same way round; then, a tie: 2 of √(3 · 2).
    assert kendall(np.array([1.0, 2.0, 3.0]), np.array([1.0, 3.0, 2.0])) == pytest.approx(1 / 3)
    tied = kendall(np.array([1.0, 2.0, 3.0]), np.array([1.0, 2.0, 2.0]))
    assert tied == pytest.approx(2 / 6**0.5)


def test_spearman_has_no_dense_ranks():
    a, b = np.array([1.0, 1, 1, 2, 3]), np.array([3.0, 1, 2, 4, 5])
    dense = np.array([1.0, 1, 1, 2, 3])
    published = 1 - 6 * ((dense - b) ** 2).sum() / (5 * 24)
    assert spearman(a, b) == pytest.approx(np.corrcoef([2, 2, 2, 4, 5], b)[0, 1])
    assert abs(spearman(a, b) - published) > 0.2


def test_scores_that_are_all_the_same_correlate_with_nothing():
    a, b = np.ones(4), np.arange(4.0)
    assert np.isnan(kendall(a, b)) and np.isnan(spearman(a, b))


def orders(scores):
    """Every order that goes down by score, all orders of ties as often."""
    return [
        order
        for order in permutations(range(len(scores)))
        if [scores[i] for i in order] == sorted(scores, reverse=True)
    ]


def published_overlap(first, second):
    """Extrapolated rank-biased overlap of two orders, as equation 32 of the paper has it."""
    depth, p = len(first), PERSISTENCE
    shared = [len(set(first[:d]) & set(second[:d])) for d in range(depth + 1)]
    total = sum(shared[d] / d * p**d for d in range(1, depth + 1))
    return shared[depth] / depth * p**depth + (1 - p) / p * total


@pytest.mark.parametrize("seed", range(8))
def test_overlaps_are_their_mean_over_every_order_of_ties(seed):
    a, b = vectors(seed, 3, tokens=5)
    every = list(product(orders(a.tolist()), orders(b.tolist())))
    expected = np.mean([published_overlap(*each) for each in every])
    assert rank_biased_overlap(a, b) == pytest.approx(expected, abs=1e-12)
    for count in range(1, 6):
        shared = [len(set(one[:count]) & set(other[:count])) / count for one, other in every]
        assert top_overlap(a, b, count) == pytest.approx(np.mean(shared), abs=1e-12)


def test_rank_biased_overlap_by_hand():
    same = np.array([3.0, 2.0, 1.0])
    assert rank_biased_overlap(same, same) == pytest.approx(1)
    # Two tokens the other way round: nothing at depth 1, everything from depth 2 on.
    assert rank_biased_overlap(same[:2], same[:2][::-1]) == pytest.approx(0.9)
    # The first two exchanged costs a tenth, the last two exchanged only 0.09 / 2.
    assert rank_biased_overlap(same, np.array([2.0, 3.0, 1.0])) == pytest.approx(0.9)
    assert rank_biased_overlap(same, np.array([3.0, 1.0, 2.0])) == pytest.approx(1 - 0.09 / 2)


def test_every_two_methods_at_once_are_the_same_as_one_by_one():
    scores = np.random.default_rng(0).integers(5, size=(6, 11)).astype(float)
    for of_all, of_two in (
        (kendall_matrix(scores), kendall),
        (spearman_matrix(scores), spearman),
        (rank_biased_overlap_matrix(scores), rank_biased_overlap),
        (top_overlap_matrix(scores, 3), lambda a, b: top_overlap(a, b, 3)),
    ):
        expected = [[of_two(one, other) for other in scores] for one in scores]
        assert of_all == pytest.approx(np.array(expected), abs=1e-12)


def test_only_the_order_counts():
    a, b = vectors(3, 1000)
    for measure in (kendall, spearman, rank_biased_overlap, lambda x, y: top_overlap(x, y, 4)):
        assert measure(np.exp(a / 100), b) == pytest.approx(measure(a, b))


def test_a_top_there_is_not_is_an_error():
    for count in (0, 10):
        with pytest.raises(UsageError, match="1 to 9 are allowed"):
            top_overlap(*vectors(0, 5), count)
