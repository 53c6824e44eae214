"""Comprehensiveness, worked by hand on three words and by ERASER's definition on long texts."""

import pytest
from bag_answers import BAG, CLOSE, LONG, WHOLE, eraser, given, judge, probability


def test_the_figure_that_the_others_start_from():
    assert probability(1.25) == pytest.approx(WHOLE, **CLOSE)


def test_comprehensiveness():
    # Without 1: 0.25; without 1 and ½: −0.25.
    assert judge("comprehensiveness", BAG, BAG) == pytest.approx(
        ((WHOLE - 0.6224593) + (WHOLE - 0.3775407)) / 2, **CLOSE
    )
    # The other way round: without −¼: 1.5; without −¼ and ½: 1.
    assert judge("comprehensiveness", BAG, [0, 1, 2]) == pytest.approx(
        WHOLE - (0.9525741 + 0.8807971) / 2, **CLOSE
    )


def test_order_goes_by_sign_and_not_by_size():
    assert judge("comprehensiveness", BAG, [-1, -2, -30]) == judge("comprehensiveness", BAG, BAG)


def test_a_curve_is_not_made_monotone():
    # A running minimum would make of 0.2, 0.8 a 0.2, 0.2.
    assert given("comprehensiveness", [0.9, 0.2, 0.8], [3, 2, 1]) == pytest.approx(0.4)


def test_scores_below_zero_are_in_the_order_too():
    # A rule that takes only what is above zero would stop after one token, or take none.
    assert judge("comprehensiveness", BAG, [5, -1, -2]) == judge("comprehensiveness", BAG, BAG)


@pytest.mark.parametrize("count", LONG)
def test_on_long_texts_the_figure_is_erasers(count):
    weights, scores, expected = eraser(count, lambda all_, top: all_.sum() - top.sum())
    assert judge("comprehensiveness", weights, scores) == pytest.approx(expected)
