"""Rank measures, by hand and by going through every order of the ties."""

from itertools import permutations

import numpy as np
import pytest

from attlas.errors import UsageError
from attlas.mathematics.ranking import average_precision, precision_at, roc_auc


def rank(scores, truth):
    return np.array(scores, dtype=float), np.array(truth, dtype=bool)


def every_order(scores, truth):
    """The marks in each order that goes down by score, all orders of ties as often."""
    found = []
    for order in permutations(range(len(scores))):
        sorted_scores = [scores[i] for i in order]
        if sorted_scores == sorted(scores, reverse=True):
            found.append([bool(truth[i]) for i in order])
    return found


def plain_average_precision(marks):
    places = [place for place, mark in enumerate(marks, 1) if mark]
    return sum(sum(marks[:place]) / place for place in places) / len(places)


@pytest.mark.parametrize(
    ("scores", "truth", "expected"),
    [
        ([4, 3, 2, 1], [1, 1, 0, 0], 1),
        ([4, 3, 2, 1], [1, 0, 1, 0], (1 + 2 / 3) / 2),
        ([4, 3, 2, 1], [0, 0, 0, 1], 1 / 4),
        ([1, 2, 3, 4], [1, 0, 0, 1], (1 + 2 / 4) / 2),
        ([7, 7], [1, 0], (1 + 1 / 2) / 2),  # first or second, as often
        ([7, 7, 7], [1, 1, 1], 1),
        ([-1, -5], [0, 1], 1 / 2),  # not by size: below zero is low
    ],
)
def test_average_precision_by_hand(scores, truth, expected):
    assert average_precision(*rank(scores, truth)) == pytest.approx(expected)


@pytest.mark.parametrize("seed", range(30))
def test_ties_are_worth_their_mean_over_every_order(seed):
    random = np.random.default_rng(seed)
    scores = random.integers(0, 3, size=7).astype(float).tolist()
    truth = random.integers(0, 2, size=7).tolist()
    truth[seed % 7] = 1
    orders = every_order(scores, truth)
    expected = np.mean([plain_average_precision(marks) for marks in orders])
    assert average_precision(*rank(scores, truth)) == pytest.approx(expected)
    for count in range(1, 8):
        expected = np.mean([np.mean(marks[:count]) for marks in orders])
        assert precision_at(*rank(scores, truth), count) == pytest.approx(expected)


def test_constant_scores_are_worth_what_random_ones_are():
    truth = np.arange(12) < 3
    random = np.random.default_rng(0)
    drawn = [average_precision(random.random(12), truth) for _ in range(4000)]
    assert average_precision(np.zeros(12), truth) == pytest.approx(np.mean(drawn), abs=0.01)


def test_precision_by_hand():
    scores, truth = rank([5, 4, 4, 1], [1, 1, 0, 0])
    assert precision_at(scores, truth, 1) == 1
    assert precision_at(scores, truth, 2) == pytest.approx((1 + 0.5) / 2)
    assert precision_at(scores, truth, 3) == pytest.approx(2 / 3)
    assert precision_at(scores, truth, 4) == 0.5


def test_what_cannot_be_ranked_is_an_error():
    with pytest.raises(UsageError, match="no token is marked"):
        average_precision(*rank([1, 2], [0, 0]))
    with pytest.raises(UsageError, match="1 to 2 are allowed"):
        precision_at(*rank([1, 2], [0, 1]), 3)


def test_the_area_under_the_curve_is_the_share_of_pairs_in_the_right_order():
    random = np.random.default_rng(0)
    scores, truth = random.integers(0, 6, 40).astype(float), random.random(40) < 0.3
    pairs = [(a > b) + (a == b) / 2 for a in scores[truth] for b in scores[~truth]]
    assert roc_auc(scores, truth) == pytest.approx(np.mean(pairs))


def test_without_one_of_the_labels_there_is_no_area():
    assert np.isnan(roc_auc(np.arange(3.0), np.ones(3, dtype=bool)))
