"""Kendall's τ on many texts at once: against scipy, text by text, with and without ties."""

import numpy as np
import pytest
import torch
from scipy.stats import kendalltau

from attlas.mathematics.rank_agreement import kendall_by_text

LENGTHS = (2, 3, 5, 8, 20, 33, 34, 60)


def padded(rows):
    width = max(map(len, rows)) + 3
    held = torch.full((len(rows), width), 7.0, dtype=torch.float64)
    marks = torch.zeros(held.shape, dtype=torch.bool)
    for number, row in enumerate(rows):
        held[number, 1 : len(row) + 1] = torch.as_tensor(row, dtype=torch.float64)
        marks[number, 1 : len(row) + 1] = True
    return held, marks


@pytest.mark.parametrize("levels", [None, 3], ids=["untied", "tied"])
def test_it_is_scipys_for_each_text(levels):
    random = np.random.default_rng(0)

    def draw(length):
        return (
            random.normal(size=length) if levels is None else random.integers(levels, size=length)
        )

    pairs = [(draw(n), draw(n)) for n in LENGTHS for _ in range(6)]
    first, marks = padded([one for one, _ in pairs])
    second, _ = padded([other for _, other in pairs])
    found = kendall_by_text(first, second, marks)
    expected = [kendalltau(one, other) for one, other in pairs]
    np.testing.assert_allclose(found.tau, [each.statistic for each in expected], atol=1e-12)
    np.testing.assert_allclose(found.p_value, [each.pvalue for each in expected], rtol=1e-9)


def test_the_same_order_of_a_long_text_has_scipys_p_value():
    rows = [np.arange(50.0), np.r_[1.0, 0.0, np.arange(2.0, 50.0)]]
    first, marks = padded([np.arange(50.0)] * 2)
    second, _ = padded(rows)
    found = kendall_by_text(first, second, marks)
    expected = [kendalltau(np.arange(50.0), row).pvalue for row in rows]
    np.testing.assert_allclose(found.p_value, expected, rtol=1e-9)


def test_equal_scores_have_no_tau():
    first, marks = padded([[1.0, 1.0, 1.0], [1.0, 2.0, 3.0]])
    second, _ = padded([[1.0, 2.0, 3.0], [1.0, 2.0, 3.0]])
    found = kendall_by_text(first, second, marks)
    assert np.isnan(found.tau[0]) and np.isnan(found.significant[0])
    assert found.tau[1] == 1.0 and found.significant[1] == 0.0  # three tokens cannot be significant
