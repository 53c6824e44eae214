"""How often tests, bounds and verdicts are wrong, on bags of words: the tables of the docs.

    python benchmarks/calibration.py

The texts and the truths are those of tests/auditing/test_calibration.py, which tests the levels.
"""

import sys
from collections import Counter
from pathlib import Path

import numpy as np

TESTS = Path(__file__).parent.parent / "tests"
sys.path[:0] = [
    str(TESTS),
    str(TESTS / "auditing"),
    str(TESTS / "auditing" / "verdict"),
    str(TESTS / "mathematics"),
]

from test_calibration import LEVELS, WORLDS, data_sets, words  # noqa: E402
from test_intervals import covering  # noqa: E402
from test_p_values import smallest_of_nulls  # noqa: E402

RUNS, COVERED, DRAWN, REPORTS = 600, 500, 100, 1000


def significance() -> None:
    print(f"p at or below {LEVELS}, {RUNS} data sets, one token decides, the worse of two measures")
    for texts in (10, 20, 50):
        found = data_sets(RUNS, texts, 4.0, np.random.default_rng(texts))
        shares = np.array([[(row <= level).mean() for level in LEVELS] for row in found])
        alone, adjusted = shares[::2].max(axis=0), shares[1::2].max(axis=0)
        print(f"{texts:4} texts: one method {alone.round(3)}, smallest of five {adjusted.round(3)}")


def findings() -> None:
    print(f"the smallest p of five findings, none of them true, {REPORTS} reports, {LEVELS}")
    for name, found in zip(("unadjusted", "by Holm"), smallest_of_nulls(REPORTS), strict=True):
        print(f"{name}: {[float((found <= level).mean()) for level in LEVELS]}")


def coverage() -> None:
    print(f"four ratios of skewed texts within their bounds, {COVERED} data sets")
    for texts in (5, 10, 20, 50, 100):
        held = covering(texts, COVERED, np.random.default_rng(texts))
        print(f"{texts:4} texts: {held / COVERED:.3f}")


def verdicts() -> None:
    print(f"verdicts on {DRAWN} data sets drawn from each of two sets of 300 texts")
    for name, (right, drawn, count) in WORLDS.items():
        found = [dict(Counter(words(drawn(seed), count, DRAWN, seed))) for seed in (0, 1)]
        print(f"{name}, {count} texts: right {right!r}, found {found}")


if __name__ == "__main__":
    significance()
    findings()
    coverage()
    verdicts()
