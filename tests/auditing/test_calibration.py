"""Calibration: intervals hold what they should, and tests err as often as they say.

The texts are drawn from populations whose figures are known. The quick runs look for what is badly
wrong; the slow ones hold the tables of docs/statistics.md, which benchmarks/calibration.py writes.
"""

import numpy as np
import pytest
from drawn_evidence import CARRYING, COUNTS, POPULATIONS, draw_tested, held, true_figures, words
from scipy.stats import binom

from attlas.mathematics.significance import per_text_p, sign_flip
from attlas.mathematics.token_effects import capture

LEVELS = (0.01, 0.05, 0.1)
DECIDING = (1.0, 6.0)  # tokens that matter alike, and one that decides
COVERED = 0.93


def null_figures(random, deciding, methods, shuffles=20):
    """What random scores reach on one text, and what shuffled ones do."""
    tokens = int(random.integers(3, 14))
    importance = random.random(tokens) ** deciding
    scores = random.random((methods + shuffles, tokens))
    scores[1] = scores[0] + 0.3 * scores[1]  # two methods that are alike
    found = np.array([capture(each, importance) for each in scores])
    return found[:methods], found[methods:]


def no_more_often(found, level):
    """Whether p-values are below the level no more often than it says, but for chance."""
    found = np.asarray(found)
    return (found <= level).sum() <= binom.ppf(0.9995, len(found), level)


def per_text(runs, deciding, random):
    drawn = (null_figures(random, deciding, methods=2) for _ in range(runs))
    return np.array([per_text_p(float(own[0]), others, "higher", random) for own, others in drawn])


def data_sets(runs, texts, deciding, random):
    """For each run: the p-value of one method, and the least adjusted of five."""
    found = []
    for run in range(runs):
        drawn = [null_figures(random, deciding, methods=5) for _ in range(texts)]
        gains = np.stack([own - others.mean() for own, others in drawn])
        test = sign_flip(gains, seed=run, draws=1999)
        found.append((test.p[0], test.adjusted.min()))
    return np.array(found).T


@pytest.mark.parametrize("deciding", DECIDING)
def test_per_text_p_values_of_random_scores_are_uniform(deciding):
    found = per_text(300, deciding, np.random.default_rng(0))
    assert all(no_more_often(found, level) for level in LEVELS)
    assert all(no_more_often(1 - found, level) for level in LEVELS)


@pytest.mark.parametrize("deciding", DECIDING)
def test_data_set_p_values_of_random_scores(deciding):
    for found in data_sets(25, 20, deciding, np.random.default_rng(1)):
        assert all(no_more_often(found, level) for level in LEVELS)


def test_a_level_that_is_not_held_is_seen():
    assert not no_more_often(np.random.default_rng(2).random(400) ** 2, 0.05)


@pytest.mark.slow
@pytest.mark.parametrize("deciding", DECIDING)
def test_per_text_p_values_of_random_scores_at_length(deciding):
    found = per_text(10_000, deciding, np.random.default_rng(3))
    assert all(no_more_often(found, level) for level in LEVELS)
    assert all(no_more_often(1 - found, level) for level in LEVELS)


@pytest.mark.slow
@pytest.mark.parametrize("texts", [20, 50])
@pytest.mark.parametrize("deciding", DECIDING)
def test_data_set_p_values_of_random_scores_in_500_runs(deciding, texts):
    for found in data_sets(500, texts, deciding, np.random.default_rng(texts)):
        assert all(no_more_often(found, level) for level in LEVELS)


def assert_covered(kind, count, carrying, runs):
    """Every interval holds its figure in 93 of 100 data sets, but for chance."""
    random = np.random.default_rng([count, round(100 * carrying)])
    truth = true_figures(kind, carrying)
    all_held = [held(draw_tested(kind, count, carrying, random), truth)[0] for _ in range(runs)]
    for name in truth:
        times = sum(each[name] for each in all_held)
        assert times >= binom.ppf(0.001, runs, COVERED), (kind, count, carrying, name, times)


@pytest.mark.parametrize(
    ("kind", "count", "carrying"),
    [
        (("alike", "reversed"), 100, 0.2),
        (("alike", "mostly all"), 18, 0.02),
        (("exponential", "half"), 30, 1.0),
    ],
)
def test_intervals_hold_where_few_texts_carry_the_sum(kind, count, carrying):
    assert_covered(kind, count, carrying, runs=25)


@pytest.mark.slow
@pytest.mark.parametrize("carrying", CARRYING)
@pytest.mark.parametrize("count", COUNTS)
@pytest.mark.parametrize("kind", POPULATIONS)
def test_intervals_hold_on_every_population(kind, count, carrying):
    assert_covered(kind, count, carrying, runs=200)


@pytest.mark.slow
def test_the_narrowest_intervals_hold_in_two_thousand_data_sets():
    assert_covered(("uniform", "beta"), 100, 1.0, runs=2000)
    assert_covered(("uniform", "beta"), 300, 1.0, runs=2000)


@pytest.mark.parametrize(("count", "carrying"), [(18, 0.02), (18, 0.2), (30, 0.05)])
def test_a_handful_of_texts_with_something_to_find_are_too_few(count, carrying):
    random = np.random.default_rng(4)
    drawn = [draw_tested(("alike", "mostly all"), count, carrying, random) for _ in range(10)]
    assert set(words(drawn)) == {"too few texts"}
