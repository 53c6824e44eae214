"""AUPRC: the average precision of the marked tokens, worked by hand."""

import pytest
from bag_answers import of_marks


def test_auprc():
    assert of_marks("auprc", [4, 3, 2, 1], [1, 0, 1, 0]) == pytest.approx((1 + 2 / 3) / 2)
    assert of_marks("auprc", [1, 2, 3, 4], [1, 0, 0, 0]) == pytest.approx(1 / 4)
