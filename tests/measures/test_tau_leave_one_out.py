"""Rank agreement with leaving one out, worked by hand on three words."""

import pytest
from bag_answers import BAG, judge


def test_tau_leave_one_out():
    assert judge("tau_leave_one_out", BAG, [10, 9, -3]) == pytest.approx(1)
    assert judge("tau_leave_one_out", BAG, [1, 2, 3]) == pytest.approx(-1)
    assert judge("tau_leave_one_out", BAG, [2, 3, 1]) == pytest.approx(1 / 3)
    # Two tied, of three pairs two in order: 2 / √(2 · 3).
    assert judge("tau_leave_one_out", BAG, [2, 2, 1]) == pytest.approx(2 / 6**0.5)


def test_tau_is_not_of_dense_ranks_or_linear():
    assert judge("tau_leave_one_out", BAG, [1e6, 1, 0]) == pytest.approx(1)
