"""Rules that decide claims, and figures with intervals, worked by hand."""

import numpy as np
import pytest

from attlas.results.support.report_sections import Figure
from attlas.studies.support import findings


@pytest.mark.parametrize(
    ("rule", "figure", "verdict"),
    [
        (findings.near(6, 3), Figure(8, 2, 14), "reproduced"),
        (findings.near(6, 3), Figure(10, 8, 12), "partly"),
        (findings.near(6, 3), Figure(20, 15, 25), "not reproduced"),
        (findings.near(0, 0.1), Figure(0.05), "reproduced"),
        (findings.near(0, 0.1), Figure(0.15), "not reproduced"),
        (findings.at_least(0.5), Figure(0.7, 0.6, 0.8), "reproduced"),
        (findings.at_least(0.5), Figure(0.7, 0.4, 1.0), "partly"),
        (findings.at_least(0.5), Figure(0.4, 0.3, 0.45), "not reproduced"),
        (findings.at_least(0), Figure(0), "reproduced"),
        (findings.at_most(0.02), Figure(0.01, 0, 0.015), "reproduced"),
        (findings.at_most(0.02), Figure(0.01, 0, 0.03), "partly"),
        (findings.at_most(0.02), Figure(0.5), "not reproduced"),
        (findings.in_share("in every task"), Figure(1.0), "reproduced"),
        (findings.in_share("in every task"), Figure(0.5), "partly"),
        (findings.in_share("in every task"), Figure(0.0), "not reproduced"),
        (findings.in_share("in every task"), Figure(None), "not tested here"),
        (findings.at_most(1), Figure(None), "not tested here"),
        (findings.near(1, 1), Figure(None), "not tested here"),
    ],
)
def test_a_rule_decides(rule, figure, verdict):
    assert findings.decided("It is so.", "a paper", rule, figure).verdict == verdict
    assert rule.words


def test_figures_over_seeds_have_students_interval():
    # t(0.975, 4) = 2.776445; the standard deviation of 1 to 5 is √2.5.
    found = findings.over_seeds([1, 2, 3, 4, 5])
    half = 2.776445 * (2.5 / 5) ** 0.5
    assert (found.value, found.n) == (3, 5)
    assert (found.low, found.high) == pytest.approx((3 - half, 3 + half), rel=1e-6)
    assert findings.over_seeds([2.0]) == Figure(2.0, None, None, 1)


def test_figures_over_texts_leave_unknown_ones_out():
    found = findings.over_texts([1.0, None, 3.0, np.nan])
    assert (found.value, found.n) == (2.0, 2) and found.low >= 1 and found.high <= 3
    assert findings.over_texts([None]).value is None


def test_a_table_compares_by_name():
    table = findings.compared("T", "r", {"a": Figure(2.0), "b": Figure(1.0)}, {"a": 1.5})
    assert [row.difference for row in table.rows] == [0.5, None]
    assert table.cells()[1] == ["a", "2.000", "–", "1.500", "+0.500"]


def test_a_share_is_of_the_cases_that_hold():
    assert findings.share_of({"a": True, "b": False}).value == 0.5
    assert findings.share_of([]).value is None


def test_means_are_over_what_is_known():
    found = findings.known_means([[1.0, None, None], [3.0, 2.0, None]])
    assert found[:2].tolist() == [2.0, 2.0] and np.isnan(found[2])
