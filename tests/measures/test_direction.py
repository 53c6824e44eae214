"""Direction: the signs of a bag of words, which are those of its weights."""

from itertools import permutations

import numpy as np
import pytest
from bag_answers import answers, judge, of_two_classes, probability

from attlas.measures import MEASURES, Case

DIRECTION = MEASURES["direction"]
BAG = np.array([0.9, -0.4, 0.55, 1.3, -0.7])


def of(weights, scores, signed=True, pairs=8):
    case = Case(np.array(scores, dtype=float), 0, signed=signed, pairs=pairs)
    whole = answers(weights, np.zeros((1, len(weights)), dtype=bool))
    return DIRECTION.value(case, whole, answers(weights, DIRECTION.ways(case)))


def shapley(weights):
    """The mean fall of each word over all orders of removing them."""
    falls = np.zeros(len(weights))
    orders = list(permutations(range(len(weights))))
    for order in orders:
        left = sum(weights)
        for word in order:
            falls[word] += probability(left) - probability(left - weights[word])
            left -= weights[word]
    return falls / len(orders)


def test_the_signs_of_the_truth_are_right_and_their_opposite_is_wrong():
    assert of(BAG, BAG) == of(BAG, np.sign(BAG)) == 1
    assert of(BAG, -BAG) == 0


@pytest.mark.parametrize("turned", range(5))
def test_a_wrong_sign_costs_what_its_word_is_worth(turned):
    scores = BAG.copy()
    scores[turned] *= -1
    worth = np.abs(shapley(BAG))
    expected = 1 - worth[turned] / worth.sum()
    assert of(BAG, scores, pairs=3000) == pytest.approx(expected, abs=0.01)


def test_a_score_of_zero_has_no_sign():
    assert 0 < of(BAG, [1, -1, 0, 1, -1]) < 1
    assert of(BAG, np.zeros(5)) == 0


def test_sizes_of_signed_scores_do_not_count():
    assert of(BAG, np.sign(BAG) * [5, 1, 9, 1, 1]) == 1


def test_scores_without_a_sign_are_asked_how_much_of_what_they_name_speaks_for_it():
    pull = np.abs(shapley(BAG))
    for scores in ([1, 1, 1, 1, 1], [4, 3, 2, 1, 0], [0, 1, 0, 0, 1]):
        weights = np.array(scores) * pull
        expected = weights[BAG > 0].sum() / weights.sum()
        assert of(BAG, scores, signed=False, pairs=3000) == pytest.approx(expected, abs=0.01)
    assert of(BAG, [0, 1, 0, 0, 1], signed=False) == 0
    assert of(BAG, [1, 0, 0, 1, 0], signed=False) == 1


def test_where_nothing_pulls_there_is_no_direction():
    case = Case(np.array([3.0, 2.0, 1.0]), 0)
    count = len(DIRECTION.ways(case))
    constant = of_two_classes(np.full(count, 0.7), np.ones(count, dtype=bool))
    assert np.isnan(DIRECTION.value(case, constant, constant))
    assert np.isnan(of(BAG, np.zeros(5), signed=False))
    assert np.isnan(judge("direction", [1.0], [1.0]))
