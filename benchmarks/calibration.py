"""How often intervals and p-values are wrong, on texts drawn by chance: the tables of the docs.

    python benchmarks/calibration.py

It writes the tables of docs/statistics.md anew, between their markers. The populations are those of
tests/drawn_evidence.py; tests/auditing/test_calibration.py tests the levels.
"""

import re
import sys
from collections import defaultdict
from collections.abc import Iterator
from pathlib import Path

import numpy as np

ROOT = Path(__file__).parent.parent
PAGE = ROOT / "docs" / "statistics.md"
sys.path[:0] = [str(ROOT / "tests"), str(ROOT / "tests" / "auditing")]

from drawn_evidence import (  # noqa: E402
    CARRYING,
    COUNTS,
    POPULATIONS,
    draw_tested,
    held,
    true_figures,
)
from test_calibration import DECIDING, LEVELS, data_sets, per_text  # noqa: E402

DRAWN, RUNS = 100, 300
NAMES = {
    "s": "s",
    "less_control": "less control",
    "less_reference": "less reference",
    "room": "room",
    "carrying": "with room",
    "contrast": "contrast",
    "use": "use",
    "highlighted": "highlighted",
    "all_tokens": "all tokens",
}


def coverage() -> Iterator[str]:
    """The share of data sets in which each interval holds, in the worst of the populations."""
    yield f"| texts | with something to find | {' | '.join(NAMES.values())} | too few texts |"
    yield "|---" * (len(NAMES) + 3) + "|"
    for count in COUNTS:
        for carrying in CARRYING:
            rows = [_covered(kind, count, carrying) for kind in POPULATIONS]
            lowest = [min(shares[name] for shares, _ in rows) for name in NAMES]
            few = np.mean([share for _, share in rows])
            cells = " | ".join(f"{share:.2f}".lstrip("0") for share in lowest)
            yield f"| {count} | {carrying:.0%} | {cells} | {few:.0%} |"


def _covered(kind: tuple[str, str], count: int, carrying: float) -> tuple[dict[str, float], float]:
    """By interval, how often it holds; and how often the word is *too few texts*."""
    random = np.random.default_rng([count, round(100 * carrying)])
    truth = true_figures(kind, carrying)
    found, few = defaultdict(list), []
    for _ in range(DRAWN):
        kept, is_few = held(draw_tested(kind, count, carrying, random), truth)
        few.append(is_few)
        for (name, _), holds in kept.items():
            found[name].append(holds)
    return {name: float(np.mean(each)) for name, each in found.items()}, float(np.mean(few))


def significance() -> Iterator[str]:
    """How often p is at or below each level where scores are random."""
    yield "| | one token decides | p ≤ .01 | p ≤ .05 | p ≤ .1 |"
    yield "|---|---|---|---|---|"
    for deciding in DECIDING:
        told = "yes" if deciding > 1 else "no"
        yield _levels("one text", told, per_text(10 * RUNS, deciding, np.random.default_rng(3)))
        for texts in (10, 20, 50):
            found = data_sets(RUNS, texts, deciding, np.random.default_rng(texts))
            for what, each in zip(("one method", "the least of five"), found, strict=True):
                yield _levels(f"{texts} texts, {what}", told, each)


def _levels(what: str, told: str, found: np.ndarray) -> str:
    shares = [f"{(found <= level).mean():.3f}".lstrip("0") for level in LEVELS]
    return f"| {what} | {told} | {' | '.join(shares)} |"


def write(name: str, lines: Iterator[str]) -> None:
    """Put a table between its markers."""
    start, end = f"<!-- table: {name} -->", "<!-- end of table -->"
    table = "\n".join(lines)
    text = PAGE.read_text(encoding="utf-8")
    pattern = re.compile(f"{re.escape(start)}.*?{re.escape(end)}", re.DOTALL)
    PAGE.write_text(pattern.sub(f"{start}\n{table}\n{end}", text, count=1), encoding="utf-8")


if __name__ == "__main__":
    write("significance", significance())
    write("coverage", coverage())
