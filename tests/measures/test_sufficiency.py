"""Sufficiency, worked by hand on three words and by ERASER's definition on long texts."""

import pytest
from bag_answers import BAG, CLOSE, LONG, WHOLE, eraser, given, judge


def test_sufficiency():
    # 1 alone; 1 and ½: 1.5.
    assert judge("sufficiency", BAG, BAG) == pytest.approx(
        WHOLE - (0.8807971 + 0.9525741) / 2, **CLOSE
    )
    # −¼ alone; −¼ and ½: 0.25.
    assert judge("sufficiency", BAG, [0, 1, 2]) == pytest.approx(
        WHOLE - (0.3775407 + 0.6224593) / 2, **CLOSE
    )


def test_a_curve_is_not_made_monotone():
    # A running maximum would make of 0.7, 0.1 a 0.7, 0.7.
    assert given("sufficiency", [0.9, 0.7, 0.1], [3, 2, 1]) == pytest.approx(0.5)


@pytest.mark.parametrize("count", LONG)
def test_on_long_texts_the_figure_is_erasers(count):
    weights, scores, expected = eraser(count, lambda _, top: top.sum())
    assert judge("sufficiency", weights, scores) == pytest.approx(expected)
