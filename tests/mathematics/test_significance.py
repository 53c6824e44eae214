"""Tests of significance: by hand, by going through every case, and what they do with nothing."""

from itertools import product

import numpy as np
import pytest
from scipy.stats import kstest, permutation_test

from attlas.errors import UnknownNameError, UsageError
from attlas.mathematics.grouping import summed_by_group
from attlas.mathematics.significance import holm, per_text_p, sign_flip


@pytest.mark.parametrize(
    ("value", "better", "ahead", "tied"),
    [
        (5.0, "higher", 0, 0),  # above all four
        (2.5, "higher", 2, 0),
        (2.5, "lower", 2, 0),
        (0.0, "higher", 4, 0),
        (0.0, "lower", 0, 0),
        (4.0, "higher", 0, 1),  # anywhere between the first and the second
        (4.0, "lower", 3, 1),
    ],
)
def test_p_by_hand(value, better, ahead, tied):
    drawn = np.random.default_rng(7).uniform()
    found = per_text_p(value, np.arange(1.0, 5.0), better, np.random.default_rng(7))
    assert found == pytest.approx((ahead + drawn * (1 + tied)) / 5)


@pytest.mark.parametrize("levels", [1, 3, 10**9])
def test_p_is_uniform_under_the_null_however_many_ties(levels):
    random = np.random.default_rng(levels)
    figures = random.integers(levels, size=(4000, 21)).astype(float)
    found = [per_text_p(float(row[0]), row[1:], "higher", random) for row in figures]
    assert kstest(found, "uniform").pvalue > 0.01


def test_what_is_not_a_number_is_left_out():
    random = np.random.default_rng(0)
    assert np.isnan(per_text_p(float("nan"), np.ones(3), "higher", random))
    assert np.isnan(per_text_p(1.0, np.full(3, np.nan), "higher", random))
    # Nine are left of ten: above all of them, a tenth at the most.
    controls = np.array([np.nan, *range(9)])
    assert per_text_p(99.0, controls, "higher", random) <= 0.1


def test_a_direction_there_is_not_is_an_error():
    with pytest.raises(UnknownNameError, match="higher, lower"):
        per_text_p(1.0, np.ones(3), "upwards", np.random.default_rng(0))


def every_sign(differences):
    """p alone and adjusted by Westfall and Young, step by step, over every way to turn signs."""
    size = np.sqrt((differences**2).sum(axis=0))
    ways = np.array(list(product([1, -1], repeat=len(differences))))
    turned = ways @ differences / size
    observed = differences.sum(axis=0) / size
    alone = (turned >= observed - 1e-9).mean(axis=0)
    adjusted, before = np.empty(len(observed)), 0.0
    left = sorted(range(len(observed)), key=lambda method: -observed[method])
    while left:
        now = (turned[:, left].max(axis=1) >= observed[left[0]] - 1e-9).mean()
        before = adjusted[left[0]] = max(before, now)
        left = left[1:]
    return alone, adjusted


@pytest.mark.parametrize("seed", range(6))
def test_few_texts_are_gone_through_in_every_way(seed):
    differences = np.random.default_rng(seed).normal(0.4, 1, size=(8, 4))
    found = sign_flip(differences)
    alone, adjusted = every_sign(differences)
    assert found.p == pytest.approx(alone, abs=1e-12)
    assert found.adjusted == pytest.approx(adjusted, abs=1e-12)


def test_one_method_alone_is_scipys_permutation_test():
    values = np.random.default_rng(1).normal(0.3, 1, size=10)
    expected = permutation_test(
        (values, np.zeros(10)),
        lambda one, other: np.mean(one - other),
        permutation_type="samples",
        alternative="greater",
        n_resamples=np.inf,
    )
    assert sign_flip(values[:, None]).p[0] == pytest.approx(expected.pvalue, abs=1e-12)


def test_drawn_signs_come_near_to_all_of_them():
    differences = np.random.default_rng(2).normal(0.3, 1, size=(13, 3))
    exact = sign_flip(differences)
    drawn = sign_flip(differences, draws=8000)
    for found, expected in ((drawn.p, exact.p), (drawn.adjusted, exact.adjusted)):
        error = 4 * np.sqrt(expected * (1 - expected) / 8000) + 1e-3
        assert (np.abs(found - expected) < error).all()


def test_the_smallest_p_there_is():
    assert sign_flip(np.ones((200, 1)), draws=999).p[0] == 1 / 1000
    assert sign_flip(np.ones((5, 1))).p[0] == 1 / 32


def test_sides_and_nothing():
    rising = np.random.default_rng(3).random((12, 1))
    found = sign_flip(np.concatenate([rising, -rising, 0 * rising], axis=1))
    assert found.p[0] < 0.001 and found.p[1] > 0.999 and found.p[2] == 1


def test_a_method_that_lacks_texts_is_tested_on_those_it_has():
    differences = np.random.default_rng(4).normal(0.5, 1, size=(10, 3))
    differences[6:, 0] = np.nan
    differences[:, 2] = np.nan
    found = sign_flip(differences)
    assert found.p[0] == pytest.approx(every_sign(differences[:6, :1])[0][0], abs=1e-12)
    assert np.isnan(found.p[2]) and np.isnan(found.adjusted[2])
    assert found.adjusted[:2] == pytest.approx(sign_flip(differences[:, :2]).adjusted)


def test_texts_of_a_group_turn_together():
    values = np.random.default_rng(5).normal(0.5, 1, size=(6, 2))
    copies, groups = np.repeat(values, 4, axis=0), np.repeat(np.arange(6), 4)
    together, once = sign_flip(copies, groups=groups), sign_flip(values)
    assert together.p == pytest.approx(once.p, abs=1e-12)
    assert sign_flip(copies).p[0] < once.p[0]
    with pytest.raises(UsageError, match="24 have values"):
        summed_by_group(copies, groups[:3])


def test_the_seed_decides():
    differences = np.random.default_rng(6).normal(0.1, 1, size=(40, 2))
    assert (sign_flip(differences, seed=1).p == sign_flip(differences, seed=1).p).all()
    assert (sign_flip(differences, seed=1).p != sign_flip(differences, seed=2).p).any()


def test_holm_by_hand():
    # 0.01 · 4, 0.02 · 3, then 0.03 · 2 that may not fall below, and 0.9.
    found = holm(np.array([0.03, 0.01, 0.9, 0.02]))
    assert found == pytest.approx([0.06, 0.04, 0.9, 0.06])
    assert holm(np.array([0.5, 0.6])) == pytest.approx([1.0, 1.0])
    with_none = holm(np.array([0.03, np.nan, 0.01]))
    assert with_none[[0, 2]] == pytest.approx([0.03, 0.02]) and np.isnan(with_none[1])
