"""Each measure that asks the model, worked by hand on texts of three and four words."""

from math import exp, log

import numpy as np
import pytest
from bag_answers import given, judge

CLOSE = {"abs": 1e-6}


def p(logit):
    """The probability of a class whose logit is this and the other's the same below zero."""
    return 1 / (1 + exp(-2 * logit))


# A bag of three: 1, ½ and −¼. All together 1.25.
BAG = [1.0, 0.5, -0.25]
WHOLE = 0.9241418  # p(1.25)


def test_the_figure_that_the_others_start_from():
    assert p(1.25) == pytest.approx(WHOLE, **CLOSE)


def test_comprehensiveness():
    # Without 1: 0.25; without 1 and ½: −0.25.
    assert judge("comprehensiveness", BAG, BAG) == pytest.approx(
        ((WHOLE - 0.6224593) + (WHOLE - 0.3775407)) / 2, **CLOSE
    )
    # The other way round: without −¼: 1.5; without −¼ and ½: 1.
    assert judge("comprehensiveness", BAG, [0, 1, 2]) == pytest.approx(
        WHOLE - (0.9525741 + 0.8807971) / 2, **CLOSE
    )


def test_sufficiency():
    # 1 alone; 1 and ½: 1.5.
    assert judge("sufficiency", BAG, BAG) == pytest.approx(
        WHOLE - (0.8807971 + 0.9525741) / 2, **CLOSE
    )
    # −¼ alone; −¼ and ½: 0.25.
    assert judge("sufficiency", BAG, [0, 1, 2]) == pytest.approx(
        WHOLE - (0.3775407 + 0.6224593) / 2, **CLOSE
    )


def test_log_odds():
    expected = (log(0.6224593) + log(0.3775407)) / 2 - log(WHOLE)
    assert judge("log_odds", BAG, BAG) == pytest.approx(expected, **CLOSE)


def test_decision_flip():
    weights = [2.0, 1.0, -2.5, 0.25]  # all together 0.75
    assert judge("decision_flip", weights, [4, 3, 1, 2]) == 1 / 4  # without 2: −1.25
    assert judge("decision_flip", weights, [3, 4, 1, 2]) == 1 / 4  # without 1: −0.25
    assert judge("decision_flip", weights, [2, 3, 4, 1]) == 1  # 3.25, 2.25, 0.25: never
    assert judge("decision_flip", weights, [3, 2, 4, 1]) == 1
    assert judge("decision_flip", [2.0, 1.5, 0.5, -1.0], [2, 4, 3, 1]) == 3 / 4  # 1.5, 1, −1


def test_decision_flip_is_the_first_even_where_the_choice_comes_back():
    assert given("decision_flip", [0.9] * 4, [4, 3, 2, 1], [True, False, True, False]) == 1 / 4


def test_monotonicity():
    # Back come −¼ (alone, p(−0.25)), then ½ (p(0.25)), then 1 (p(1.25)): both steps rise.
    assert judge("monotonicity", BAG, BAG) == 1
    # Back come 1, then ½ (rises), then −¼ (falls).
    assert judge("monotonicity", BAG, [0, 1, 2]) == 1 / 2
    # A step that changes nothing is no rise.
    assert given("monotonicity", [0.9, 0.9, 0.5], [3, 2, 1]) == 1 / 2


@pytest.mark.parametrize("seed", range(5))
def test_monotonicity_of_a_sum_sees_only_where_an_order_starts(seed):
    random = np.random.default_rng(seed)
    weights, scores = random.normal(0.5, 1, 12), random.normal(size=12)
    weights = weights if weights.sum() > 0 else -weights
    after_the_first = np.delete(weights, scores.argmin())
    assert judge("monotonicity", weights, scores) == pytest.approx((after_the_first > 0).mean())


def test_tau_leave_one_out():
    assert judge("tau_leave_one_out", BAG, [10, 9, -3]) == pytest.approx(1)
    assert judge("tau_leave_one_out", BAG, [1, 2, 3]) == pytest.approx(-1)
    assert judge("tau_leave_one_out", BAG, [2, 3, 1]) == pytest.approx(1 / 3)
    # Two tied, of three pairs two in order: 2 / √(2 · 3).
    assert judge("tau_leave_one_out", BAG, [2, 2, 1]) == pytest.approx(2 / 6**0.5)


def test_tau_is_not_of_dense_ranks_or_linear():
    assert judge("tau_leave_one_out", BAG, [1e6, 1, 0]) == pytest.approx(1)


def test_order_goes_by_sign_and_not_by_size():
    assert judge("comprehensiveness", BAG, [-1, -2, -30]) == judge("comprehensiveness", BAG, BAG)


def test_a_curve_is_not_made_monotone():
    # A running minimum would make of 0.2, 0.8 a 0.2, 0.2.
    assert given("comprehensiveness", [0.9, 0.2, 0.8], [3, 2, 1]) == pytest.approx(0.4)
    # And a running maximum of 0.7, 0.1 a 0.7, 0.7.
    assert given("sufficiency", [0.9, 0.7, 0.1], [3, 2, 1]) == pytest.approx(0.5)
    assert given("log_odds", [0.8, 0.2, 0.4], [3, 2, 1]) == pytest.approx(
        (log(0.2) + log(0.4)) / 2 - log(0.8)
    )


def test_scores_below_zero_are_in_the_order_too():
    # A rule that takes only what is above zero would stop after one token, or take none.
    assert judge("comprehensiveness", BAG, [5, -1, -2]) == judge("comprehensiveness", BAG, BAG)


def eraser(whole, by_threshold):
    """ERASER's area over the perturbation curve: the mean over thresholds of the difference."""
    return sum(whole - found for found in by_threshold.values()) / len(by_threshold)


@pytest.mark.parametrize("count", [51, 60, 100, 137, 400])
def test_on_long_texts_the_figures_are_erasers(count):
    random = np.random.default_rng(count)
    weights = random.normal(0.1, 0.3, count)
    scores = random.normal(size=count)
    weights = weights if weights.sum() > 0 else -weights
    ranked = np.argsort(-scores)
    without, alone = {}, {}
    for percent in (1, 5, 10, 20, 50):
        taken = ranked[: -(-count * percent // 100)]
        alone[percent] = p(weights[taken].sum())
        without[percent] = p(weights.sum() - weights[taken].sum())
    whole = p(weights.sum())
    assert judge("comprehensiveness", weights, scores) == pytest.approx(eraser(whole, without))
    assert judge("sufficiency", weights, scores) == pytest.approx(eraser(whole, alone))
