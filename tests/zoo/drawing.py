"""Draws of texts from a large pool, each with the verdict that it alone would give."""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from itertools import pairwise
from pathlib import Path

import numpy as np
import pandas as pd
from zoo.kinds import NOT, SUPPORTED, Kind

from attlas.auditing.collected import Collected
from attlas.auditing.plan import plan_audit
from attlas.auditing.verdict.verdict import Tested, verdict
from attlas.auditing.work.drafts import Drafts
from attlas.auditing.work.explained import explain_batch
from attlas.auditing.work.figures import measure_batch
from attlas.mathematics.standing import select_texts, text_count
from attlas.results.support.verdict import GridWord, Verdict

OPPOSITE = {SUPPORTED: NOT, NOT: SUPPORTED}
ORDER = [NOT, "partly", SUPPORTED]  # what the weights gain from left to right


def evidence(kind: Kind, texts: int, seed: int = 0, folder: Path | None = None) -> Tested:
    """What an audit finds for the verdict on this many texts; kept in the folder, if given."""
    known = None if folder is None else folder / f"{kind.file}-{seed}-{texts}.parquet"
    if known is not None and known.exists():
        return _tested(pd.read_parquet(known))
    subject = kind.make(seed, folder)
    examples = kind.examples(texts, seed)
    plan = plan_audit(subject, examples, ["raw_attention"], ["location"], [], removal=["mask"])
    found = [
        measure_batch(explain_batch(plan, numbers, Drafts()), plan, Drafts()).where
        for numbers in plan.batches
    ]
    where = pd.concat(found, ignore_index=True)
    if known is not None:
        where.to_parquet(known)
    return _tested(where)


def _tested(where: pd.DataFrame) -> Tested:
    nothing = pd.DataFrame(columns=["method", "measure", "removal"])
    return Collected(nothing, nothing, nothing, nothing, where, None, 0).tested()


def draw(tested: Tested, size: int, count: int, seed: int = 0) -> Iterator[Verdict]:
    """The verdicts on this many samples of the texts."""
    random = np.random.default_rng(seed)
    for number in range(count):
        chosen = random.choice(text_count(tested.evidence), size, replace=False)
        yield verdict(select(tested, np.sort(chosen), number))


def select(tested: Tested, texts: np.ndarray, seed: int) -> Tested:
    """What a verdict on these texts alone would rest on."""
    return replace(
        tested,
        evidence=select_texts(tested.evidence, texts),
        moved=None if tested.moved is None else tested.moved[texts],
        directions={
            removal: {name: values[texts] for name, values in shares.items()}
            for removal, shares in tested.directions.items()
        },
        seed=seed,
    )


@dataclass(frozen=True)
class Tally:
    """How often the verdict was right on draws from one model."""

    words: Counter[str]
    right: int
    opposite: int
    monotone: int  # draws whose grid is monotone
    splits: float  # the mean share of splits that give the word
    methods: Counter[str]


def tally(kind: Kind, verdicts: Sequence[Verdict]) -> Tally:
    """Count the words, the right ones and their opposites."""
    words = Counter(each.word for each in verdicts)
    wrong = {OPPOSITE[word] for word in kind.right if word in OPPOSITE} - set(kind.right)
    return Tally(
        words,
        sum(words[word] for word in kind.right),
        sum(words[word] for word in wrong),
        sum(is_monotone(each.grid) for each in verdicts),
        float(np.mean([each.same_word for each in verdicts])),
        Counter(each.method for each in verdicts),
    )


def is_monotone(grid: Sequence[GridWord]) -> bool:
    """Whether a higher floor never helps the weights and a higher margin never harms them.

    Between two words there may be thresholds for which there are too few texts, but not between
    two that are the same.
    """
    lines = [
        *_lines(grid, by="margin", along="floor", sign=-1),
        *_lines(grid, by="floor", along="margin", sign=1),
    ]
    return all(_rises(line) for line in lines)


def _lines(grid: Sequence[GridWord], by: str, along: str, sign: int) -> Iterator[list[str]]:
    for fixed in sorted({getattr(each, by) for each in grid}):
        own = [each for each in grid if getattr(each, by) == fixed]
        yield [each.word for each in sorted(own, key=lambda each: sign * getattr(each, along))]


def _rises(words: Sequence[str]) -> bool:
    changes = [word for word, before in zip(words, [None, *words], strict=False) if word != before]
    decided = [ORDER.index(word) for word in changes if word in ORDER]
    return all(one < other for one, other in pairwise(decided))
