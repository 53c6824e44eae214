"""Counterfactual edit: the average precision of the marked tokens, worked by hand."""

import pytest
from bag_answers import of_marks


def test_counterfactual_edit():
    assert of_marks("counterfactual_edit", [4, 3, 2, 1], [1, 0, 1, 0]) == pytest.approx(
        (1 + 2 / 3) / 2
    )
    assert of_marks("counterfactual_edit", [1, 2, 3, 4], [1, 0, 0, 0]) == pytest.approx(1 / 4)
