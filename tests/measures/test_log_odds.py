"""Log-odds, worked by hand on three words."""

from math import log

import pytest
from bag_answers import BAG, CLOSE, WHOLE, given, judge


def test_log_odds():
    expected = (log(0.6224593) + log(0.3775407)) / 2 - log(WHOLE)
    assert judge("log_odds", BAG, BAG) == pytest.approx(expected, **CLOSE)


def test_a_curve_is_not_made_monotone():
    assert given("log_odds", [0.8, 0.2, 0.4], [3, 2, 1]) == pytest.approx(
        (log(0.2) + log(0.4)) / 2 - log(0.8)
    )
