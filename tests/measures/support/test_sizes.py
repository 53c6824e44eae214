"""How many tokens are taken, and which."""

import numpy as np
import pytest

from attlas.measures import Case, sizes
from attlas.measures.support.sizes import tops


@pytest.mark.parametrize(
    ("count", "expected"),
    [
        (0, []),
        (1, []),
        (2, [1]),
        (4, [1, 2, 3]),
        (50, list(range(1, 50))),
        # Rounded up, by whole numbers: 0.51, 2.55, 5.1, 10.2, 25.5.
        (51, [1, 3, 6, 11, 26]),
        # Exactly 7 and 14, which in floating point are a little more.
        (70, [1, 4, 7, 14, 35]),
        (100, [1, 5, 10, 20, 50]),
        (401, [5, 21, 41, 81, 201]),
    ],
)
def test_sizes(count, expected):
    assert sizes(count) == expected


def test_all_tokens_together_are_never_a_size():
    assert all(count not in sizes(count) for count in range(200))


def test_the_highest_tokens_of_each_size():
    case = Case(np.array([0.1, 5.0, -3.0, 2.0]), seed=0)
    assert tops(case).tolist() == [
        [False, True, False, False],
        [False, True, False, True],
        [True, True, False, True],
    ]


def test_one_token_has_no_sets():
    assert tops(Case(np.array([1.0]), seed=0)).shape == (0, 1)


def test_ties_are_broken_by_the_seed_and_by_chance():
    scores = np.array([1.0, 0.0, 0.0, 0.0, 2.0])
    orders = [Case(scores, seed).order().tolist() for seed in range(600)]
    assert orders == [Case(scores, seed).order().tolist() for seed in range(600)]
    assert all(order[:2] == [4, 0] for order in orders)
    second = np.bincount([order[2] for order in orders], minlength=5)
    assert second[1:4].min() > 150  # of 600, each should come first in about 200
