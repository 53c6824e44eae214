"""Token F1, worked by hand."""

import numpy as np
import pytest
from bag_answers import of_marks

from attlas.measures.token_f1 import f1_at


@pytest.mark.parametrize(
    ("scores", "marks", "expected"),
    [
        ([4, 3, 2, 1], [1, 1, 0, 0], 1),
        ([4, 3, 2, 1], [1, 0, 1, 0], 1 / 2),
        ([4, 3, 2, 1], [0, 0, 1, 1], 0),
        ([-4, -3, -2, -1], [0, 0, 0, 1], 1),  # not by size
        ([7, 7, 1, 1], [1, 0, 0, 0], 1 / 2),  # on average over the orders of a tie
    ],
)
def test_token_f1(scores, marks, expected):
    assert of_marks("token_f1", scores, marks) == pytest.approx(expected)


def test_f1_of_another_number_from_the_top():
    scores, marks = np.array([5.0, 4.0, 3.0, 2.0]), np.array([True, False, True, False])
    assert f1_at(scores, marks, 1) == pytest.approx(2 * 1 * 0.5 / 1.5)
    assert f1_at(scores, marks, 3) == pytest.approx(2 * (2 / 3) * 1 / (2 / 3 + 1))
