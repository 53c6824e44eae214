"""Intervals: they hold what they should, they narrow, and they keep together what belongs so."""

from itertools import pairwise

import numpy as np
import pytest
from scipy.stats import binom, binomtest, bootstrap, norm, sem, t

from attlas.errors import UsageError
from attlas.mathematics.intervals import (
    bootstrap_mean,
    bootstrap_means,
    clopper_pearson,
    ratio_errors,
    simultaneous_bounds,
)


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


def test_a_share_is_as_sure_as_binomials_are():
    assert clopper_pearson(0, 1000).high == pytest.approx(0.0037, abs=5e-5)
    assert clopper_pearson(0, 1000).low == 0 and clopper_pearson(7, 7).high == 1
    for successes, count in ((0, 5), (3, 10), (50, 60), (9, 9)):
        expected = binomtest(successes, count).proportion_ci(0.9)
        found = clopper_pearson(successes, count, level=0.9)
        assert found.low == pytest.approx(expected.low, abs=1e-9)
        assert found.high == pytest.approx(expected.high, abs=1e-9)
        assert (found.mean, found.inputs) == (successes / count, count)
    for successes, count in ((3, 2), (-1, 2), (0, 0)):
        with pytest.raises(UsageError, match=f"{successes} of {count}"):
            clopper_pearson(successes, count)


def of_means(values):
    """Means of columns, as ratios with denominators of one."""
    return values[:, :, None], np.ones_like(values)[:, :, None]


def test_a_single_mean_of_normal_values_has_students_interval():
    values = np.random.default_rng(5).normal(size=(12, 1))
    found = simultaneous_bounds(*of_means(values))[0]
    expected = t.interval(0.95, 11, loc=values.mean(), scale=sem(values[:, 0]))
    assert found.mean == pytest.approx(values.mean())
    assert (found.low, found.high) == pytest.approx(expected, rel=0.3)


def test_several_at_once_are_wider_by_as_much_as_independent_ones_must_be():
    values = np.random.default_rng(6).normal(size=(600, 10))
    found = simultaneous_bounds(*of_means(values))
    half = norm.ppf((1 + 0.95 ** (1 / 10)) / 2)  # each holds with the tenth root of the level
    for one, column in zip(found, values.T, strict=True):
        assert one.high - one.mean == pytest.approx(half * sem(column), rel=0.06)
    copies = simultaneous_bounds(*of_means(np.repeat(values[:, :1], 10, axis=1)))
    assert copies[0].high - copies[0].mean == pytest.approx(1.96 * sem(values[:, 0]), rel=0.06)


def ratio_by_hand(numerators, denominators):
    return np.mean([a.sum() / b.sum() for a, b in zip(numerators.T, denominators.T, strict=True)])


def test_a_statistic_is_the_mean_of_ratios_of_sums():
    random = np.random.default_rng(7)
    numerators, denominators = random.normal(size=(2, 30, 3, 2)) + 2
    found = simultaneous_bounds(numerators, denominators)
    for k in range(3):
        expected = ratio_by_hand(numerators[:, k], denominators[:, k])
        assert found[k].mean == pytest.approx(expected, abs=1e-12)
    # Denominators below zero, as for a measure where low is better, make no difference.
    turned = simultaneous_bounds(-numerators, -denominators)
    assert [one.low for one in turned] == pytest.approx([one.low for one in found])


def test_the_error_of_a_ratio_is_that_of_leaving_texts_out():
    random = np.random.default_rng(8)
    denominators = random.gamma(3, size=(300, 1, 2))
    numerators = denominators * random.normal(0.5, 0.3, size=(300, 1, 2))
    left_out = [
        ratio_by_hand(np.delete(numerators[:, 0], i, 0), np.delete(denominators[:, 0], i, 0))
        for i in range(300)
    ]
    jackknife = np.sqrt(299 * np.var(left_out))
    assert ratio_errors(numerators, denominators)[0] == pytest.approx(jackknife, rel=0.01)


def covering(texts, runs, random):
    """How often all of four ratios of skewed texts lie within their bounds."""
    held = 0
    for run in range(runs):
        room = random.gamma(1.0, 0.3, size=(texts, 1, 2))
        gains = room * random.normal(0.4, 0.5, size=(texts, 4, 2))
        found = simultaneous_bounds(gains, np.broadcast_to(room, gains.shape), seed=run)
        held += all(one.low <= 0.4 <= one.high for one in found)
    return held


@pytest.mark.parametrize("texts", [5, 10, 60])
def test_all_bounds_hold_at_once_as_often_as_they_say(texts):
    held = covering(texts, 100, np.random.default_rng(texts))
    assert held >= binom.ppf(0.001, 100, 0.95)


@pytest.mark.slow
@pytest.mark.parametrize("texts", [5, 10, 20, 60, 200])
def test_all_bounds_hold_at_once_in_a_thousand_runs(texts):
    held = covering(texts, 1000, np.random.default_rng(texts))
    assert held >= binom.ppf(0.001, 1000, 0.95)


def test_what_is_not_a_number_is_left_out_of_its_statistic_alone():
    random = np.random.default_rng(9)
    values = random.normal(1, 1, size=(40, 2))
    values[25:, 0] = np.nan
    found = simultaneous_bounds(*of_means(values))
    assert found[0].mean == pytest.approx(values[:25, 0].mean())
    assert found[1].mean == pytest.approx(values[:, 1].mean())
    assert [one.inputs for one in found] == [25, 40]
    # The bounds are about those of the texts that are there, by themselves.
    error = sem(values[:25, 0])
    assert found[0].high - found[0].mean == pytest.approx(2.4 * error, rel=0.25)


def test_texts_of_a_group_are_drawn_together():
    values = np.random.default_rng(10).normal(size=(30, 1))
    copies, groups = np.repeat(values, 5, axis=0), np.repeat(np.arange(30), 5)
    together = simultaneous_bounds(*of_means(copies), groups=groups)[0]
    once = simultaneous_bounds(*of_means(values))[0]
    assert (together.mean, together.low) == pytest.approx((once.mean, once.low))
    apart = simultaneous_bounds(*of_means(copies))[0]
    assert apart.high - apart.low < 0.6 * (together.high - together.low)


def test_what_never_varies_has_no_width_and_what_has_no_room_no_value():
    room = np.random.default_rng(11).random((20, 1, 1)) + 0.5
    gains = np.concatenate([room, 0 * room, room], axis=1)
    below = np.concatenate([room, room, 0 * room], axis=1)
    whole, none, unknown = simultaneous_bounds(gains, below)
    assert (whole.mean, whole.low, whole.high) == pytest.approx((1, 1, 1))
    assert (none.mean, none.low, none.high) == (0, 0, 0)
    assert np.isnan([unknown.mean, unknown.low, unknown.high]).all()


def test_one_or_two_texts_bound_nothing():
    for values in ([[0.2]], [[0.2], [0.4]]):
        found = simultaneous_bounds(*of_means(np.array(values)))[0]
        assert (found.low, found.high) == (-np.inf, np.inf)
    with pytest.raises(UsageError, match="at least one text"):
        simultaneous_bounds(*of_means(np.zeros((0, 1))))


def test_the_means_of_columns_have_the_intervals_that_scipy_finds():
    values = np.random.default_rng(1).gamma(2, size=(300, 3))
    values[::5, 2] = np.nan
    for column, found in zip(values.T, bootstrap_means(values, seed=3), strict=True):
        known = column[~np.isnan(column)]
        assert found.mean == pytest.approx(known.mean()) and found.inputs == len(known)
        drawn = bootstrap((known,), np.mean, n_resamples=5000, method="percentile", rng=0)
        low, high = drawn.confidence_interval
        assert (found.low, found.high) == pytest.approx((low, high), abs=0.08 * (high - low))


def test_a_column_of_nothing_has_no_mean():
    for texts in (4, 0):
        (found,) = bootstrap_means(np.full((texts, 1), np.nan))
        assert np.isnan([found.mean, found.low, found.high]).all() and found.inputs == 0


def test_the_means_of_texts_that_come_twice_are_no_surer():
    values = np.random.default_rng(2).normal(size=(40, 2))
    twice, groups = np.repeat(values, 2, axis=0), np.repeat(np.arange(40), 2)
    once = bootstrap_means(values, seed=5)
    for one, other in zip(once, bootstrap_means(twice, 5, groups), strict=True):
        assert (other.low, other.high) == pytest.approx((one.low, one.high))


def test_one_text_that_differs_does_not_make_every_interval_infinite():
    """A third of all draws lack it, and show no error at all."""
    others = np.random.default_rng(0).normal(1, 0.1, 120)
    single = np.zeros(120)
    single[7] = 0.5
    numerators = np.stack([others, single], axis=1)[..., None]
    first, second = simultaneous_bounds(numerators, np.ones_like(numerators))
    (alone,) = simultaneous_bounds(numerators[:, :1], np.ones((120, 1, 1)))
    assert second.mean == pytest.approx(0.5 / 120)
    assert 0.5 / 120 <= second.high - second.mean <= 0.02
    assert alone.high - alone.mean <= first.high - first.mean <= 2 * (alone.high - alone.mean)
