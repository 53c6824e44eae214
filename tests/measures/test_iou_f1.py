"""IOU F1: by hand, and by ERASER's definition on sets of tokens."""

from itertools import product

import numpy as np
import pytest
from bag_answers import of_marks


@pytest.mark.parametrize(
    ("scores", "marks", "expected"),
    [
        ([9, 8, 0, 0, 0], [1, 1, 0, 0, 0], 1),
        # Top 2 to 4, marked 1 to 3: two of four shared, which is just enough.
        ([0, 9, 8, 7, 0], [1, 1, 1, 0, 0], 1),
        # Top 3 to 5, marked 1 to 3: one of five.
        ([0, 0, 9, 8, 7], [1, 1, 1, 0, 0], 0),
        # Two runs found, 1–2 and 5, of which the first is right; one marked: P ½, R 1.
        ([9, 8, 0, 0, 7], [1, 1, 1, 0, 0], 2 / 3),
        # One run found, that is one of two marked: P 1, R ½; the other run is too small a part.
        ([9, 8, 7, 0, 0, 0], [1, 1, 0, 0, 1, 0], 2 / 3),
    ],
)
def test_iou_f1(scores, marks, expected):
    assert of_marks("iou_f1", scores, marks) == pytest.approx(expected)


def stretches(marks):
    """Sets of neighbouring marked tokens."""
    found, last = [], None
    for token, mark in enumerate(marks):
        if mark and last == token - 1 and found:
            found[-1].add(token)
        elif mark:
            found.append({token})
        last = token if mark else last
    return found


def eraser_iou_f1(top, marks):
    """A found span is right where its best overlap with a true one is at least a half."""
    predicted, true = stretches(top), stretches(marks)
    best = [max(len(one & other) / len(one | other) for other in true) for one in predicted]
    right = sum(each >= 0.5 for each in best)
    precision, recall = right / len(predicted), right / len(true)
    return 0 if right == 0 else 2 * precision * recall / (precision + recall)


def test_iou_f1_is_erasers_for_every_pair_of_marks():
    count = 6
    for top, marks in product(product((0, 1), repeat=count), repeat=2):
        if sum(top) == sum(marks) and 0 < sum(marks) < count:
            scores = np.array(top) + np.linspace(0, 0.1, count)
            assert of_marks("iou_f1", scores, marks) == pytest.approx(eraser_iou_f1(top, marks))
