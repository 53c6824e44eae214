"""Intervals of a mean: they hold it, they narrow, and they keep one input's values together."""

from itertools import pairwise

import numpy as np
import pytest

from attlas.errors import UsageError
from attlas.quantities.intervals import bootstrap_mean


def each(values):
    return [[float(value)] for value in values]


def test_the_interval_holds_the_mean_and_narrows_with_more_inputs():
    draw = np.random.default_rng(0).random(1600)
    widths = []
    for count in (25, 100, 400, 1600):
        found = bootstrap_mean(each(draw[:count]))
        assert found.low < found.mean < found.high
        assert (found.mean, found.inputs) == (pytest.approx(draw[:count].mean()), count)
        widths.append(found.high - found.low)
    # Four times the inputs, half the width.
    assert all(wide / narrow == pytest.approx(2, rel=0.25) for wide, narrow in pairwise(widths))


def test_it_is_the_normal_interval_where_that_is_right():
    draw = np.random.default_rng(1).normal(size=2000)
    found = bootstrap_mean(each(draw))
    error = 1.96 * draw.std() / 2000**0.5
    assert found.high - found.mean == pytest.approx(error, rel=0.1)
    assert found.mean - found.low == pytest.approx(error, rel=0.1)


def test_it_covers_the_truth_about_as_often_as_it_says():
    random = np.random.default_rng(2)
    found = [bootstrap_mean(each(random.random(60) < 0.3), seed=i) for i in range(200)]
    covered = sum(one.low <= 0.3 <= one.high for one in found) / 200
    assert 0.88 <= covered <= 1


def test_values_of_one_input_stay_together():
    values = np.random.default_rng(3).random(50)
    alone = bootstrap_mean(each(values))
    repeated = bootstrap_mean([[float(value)] * 8 for value in values])
    assert repeated == alone


def test_every_value_counts_the_same():
    assert bootstrap_mean([[1.0], [0.0, 0.0, 0.0]]).mean == 0.25


def test_the_seed_decides():
    values = each(np.random.default_rng(4).random(30))
    assert bootstrap_mean(values, seed=1) == bootstrap_mean(values, seed=1)
    assert bootstrap_mean(values, seed=1) != bootstrap_mean(values, seed=2)


def test_nothing_to_draw_from_is_an_error():
    for nothing in ([], [[]]):
        with pytest.raises(UsageError, match="at least one input"):
            bootstrap_mean(nothing)
