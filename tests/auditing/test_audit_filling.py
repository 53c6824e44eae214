"""An audit that puts texts of several lengths into one batch finds what it finds of them apart."""

from functools import cache

import pytest
from audits import small_audit

import attlas
from attlas.models.asking import filling
from attlas.removing import erasures as erasure

TEXTS = (
    "a great and moving film",
    "a dull , lifeless film",
    "I loved every minute of this wonderful film .",
    "the plot is thin and the acting is bad",
    "not good at all",
    "one of the best movies of the year",
)
ASKED = {
    "methods": ("gradient_attention", "value_zeroing"),
    "measures": ("comprehensiveness", "infidelity", "sensitivity", "randomisation"),
    "trials": ("permutation", "uniform"),
    "texts_for_slowest": 4,
    "pairs": 2,
}


@cache
def sentiment():
    return attlas.load("sentiment", device="cpu")


def audit():
    return small_audit(sentiment(), list(TEXTS), **ASKED)


@pytest.fixture
def batches(monkeypatch):
    """How many batches the texts of each group of questions were in."""
    counts = []
    usual = filling.fill

    def fill(questions):
        found = usual(questions)
        counts.append((len(questions), len(found)))
        return found

    for module in (
        "auditing.work.explained",
        "auditing.work.trials",
        "measures.support.recomputing",
    ):
        monkeypatch.setattr(f"attlas.{module}.fill", fill)
    return counts


def test_the_figures_are_the_same(batches, monkeypatch):
    apart = audit()
    assert all(before == after for before, after in batches)
    batches.clear()
    for module in (filling, erasure):
        monkeypatch.setattr(module, "NEAR", {"cpu": 4})
    monkeypatch.setattr(filling, "SMALL", 0)
    together = audit()
    assert all(before > after > 1 for before, after in batches) and len(batches) >= 8
    assert together.verdict.word == apart.verdict.word
    for before, after in zip(apart.table.rows, together.table.rows, strict=True):
        for one, other in zip(before.cells, after.cells, strict=True):
            assert other.figure.value == pytest.approx(one.figure.value, abs=1e-3), before
    assert [each.name for each in together.trials] == [each.name for each in apart.trials]
    for before, after in zip(apart.trials, together.trials, strict=True):
        for one, other in zip(before.figures, after.figures, strict=True):
            assert one.name == other.name
            assert other.figure.value == pytest.approx(one.figure.value, abs=1e-3, nan_ok=True)
