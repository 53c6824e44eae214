"""Location: worked by hand where one word decides, and what signs and special scores do to it."""

import numpy as np
import pytest
from bag_answers import answers, judge, of_two_classes, probability

from attlas.measures import MEASURES, Case

LOCATION = MEASURES["location"]
BAG = [0.9, -0.4, 0.55, 1.3, -0.7, 0.2]


def best(weights, seed=0):
    case = Case(np.ones(len(weights)), seed)
    whole = answers(weights, np.zeros((1, len(weights)), dtype=bool))
    return LOCATION.ceiling(case, whole, answers(weights, LOCATION.ways(case)))


def test_one_word_that_decides_is_worth_its_effect_if_it_comes_first():
    weights = [0, 0, 1.2, 0, 0]
    effect = probability(1.2) - probability(0)
    for place, share in enumerate([1, 0.5, 0, -0.5, -1]):
        scores = np.roll([9, 7, 5, 3, 1], 2)  # the word is first
        scores[[2, (2 + place) % 5]] = scores[[(2 + place) % 5, 2]]
        assert judge("location", weights, scores) == pytest.approx(share * effect)
    assert best(weights) == pytest.approx(effect)


def test_the_sign_of_scores_does_not_count():
    scores = np.array([0.5, 0.1, -0.2, 2.0, -1.0, 0.4])
    expected = judge("location", BAG, scores)
    for same in (np.abs(scores), -scores, scores * [1, -1, 1, -1, 1, -1], scores**3):
        assert judge("location", BAG, same) == expected


def test_the_size_of_the_truth_comes_near_the_best():
    for seed in range(5):
        assert judge("location", BAG, BAG, seed) > 0.95 * best(BAG, seed) > 0
        assert judge("location", BAG, 1 / np.array(BAG), seed) < 0


def test_a_word_that_speaks_against_the_prediction_matters_as_much():
    """Where removal curves would call it a mistake to put that word first."""
    weights = [1.0, -0.9, 0, 0, 0]
    named = judge("location", weights, [2, 1, 0, 0, 0])
    assert named == pytest.approx(best(weights), rel=0.05)
    assert judge("location", weights, [2, 0, 1, 0, 0]) < 0.7 * named


def test_equal_scores_have_what_chance_has():
    assert judge("location", BAG, np.ones(6)) == pytest.approx(0, abs=1e-12)


def test_all_explanations_of_a_text_share_its_sets():
    one, other = (Case(np.array(scores), 5) for scores in ([1.0, 2.0, 3.0], [3.0, 1.0, 1.0]))
    assert LOCATION.shares_ways and LOCATION.ways(one) is LOCATION.ways(other)
    assert not np.array_equal(LOCATION.ways(one), LOCATION.ways(Case(np.ones(3), 6)))


def test_a_model_that_always_says_the_same_has_nothing_to_point_at():
    case = Case(np.array([3.0, 2.0, 1.0]), 0)
    ways = LOCATION.ways(case)
    constant = of_two_classes(np.full(len(ways), 0.7), np.ones(len(ways), dtype=bool))
    assert LOCATION.value(case, constant, constant) == 0
    assert LOCATION.ceiling(case, constant, constant) == 0


def test_where_nothing_would_be_left_the_rest_is_judged():
    case = Case(np.array(BAG), 0)
    ways = LOCATION.ways(case)
    known = np.where(ways.all(axis=1), np.nan, answers(BAG, ways).probability)
    outcomes = of_two_classes(known, known > 0.5)
    found = LOCATION.value(case, outcomes, outcomes)
    assert found > 0.8 * judge("location", BAG, BAG)
