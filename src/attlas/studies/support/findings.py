"""Findings: what a study returns; figures with intervals, and claims decided by rules."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from math import isnan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attlas.mathematics.intervals import Estimate, bootstrap_means, student_mean
from attlas.results import Claim, ComparedRow, ComparedTable
from attlas.results.support.report_sections import Figure, Number

Judge = Callable[[Figure], str]
Real = float | int


@dataclass(frozen=True)
class Findings:
    """What a study found; whoever runs it adds settings, versions and time.

    `differs` says, one sentence each, what of the set-up is not as published.
    """

    claims: tuple[Claim, ...]
    differs: tuple[str, ...]
    tables: tuple[ComparedTable, ...] = ()
    plots: tuple[Mapping[str, Any], ...] = ()
    seeds: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)


@dataclass(frozen=True)
class Rule:
    """How a claim is decided: in words, and as a function of our figure."""

    words: str
    judge: Judge


def near(published: Real, within: Real) -> Rule:
    """Close to a published figure."""

    def judge(ours: Figure) -> str:
        if _known(ours.value) is None:
            return "not tested here"
        low, high = _ends(ours)
        if abs((ours.value or 0.0) - published) <= within:
            return "reproduced"
        return "partly" if low <= published + within and high >= published - within else _NOT

    words = f"ours within {within:g} of {published:g}; partly, if only its interval reaches that"
    return Rule(words, judge)


def at_least(least: Real) -> Rule:
    """Not below a value, with the whole interval."""
    words = f"ours and its whole interval at least {least:g}; partly, if the interval crosses it"
    return Rule(words, lambda ours: _on_one_side(ours, lambda end: end >= least))


def at_most(most: Real) -> Rule:
    """Not above a value, with the whole interval."""
    words = f"ours and its whole interval at most {most:g}; partly, if the interval crosses it"
    return Rule(words, lambda ours: _on_one_side(ours, lambda end: end <= most))


def in_share(what: str) -> Rule:
    """A statement about several cases; our figure is the share of them in which it holds."""

    def judge(ours: Figure) -> str:
        if _known(ours.value) is None:
            return "not tested here"
        return "reproduced" if ours.value == 1 else _NOT if ours.value == 0 else "partly"

    return Rule(f"{what}; partly, if only in some", judge)


def decided(
    said: str,
    source: str,
    rule: Rule,
    ours: Figure,
    *,
    found: str = "",
    published: Number = None,
    over: str = "seeds",
) -> Claim:
    """A claim with the verdict that its rule gives."""
    return Claim(said, source, rule.words, rule.judge(ours), found, ours, published, over)


def untested(said: str, source: str, why: str) -> Claim:
    """A claim that this study does not test, and why, or where it is tested."""
    return Claim(said, source, "none: not tested", "not tested here", why)


def share_of(cases: Mapping[str, bool] | Sequence[bool]) -> Figure:
    """The share of cases that hold, as a figure without an interval."""
    held = list(cases.values() if isinstance(cases, Mapping) else cases)
    return Figure(sum(held) / len(held) if held else None, n=len(held))


def listed(values: Mapping[str, Real]) -> str:
    """Values by name, in words."""
    return ", ".join(f"{name} {value:.2f}".replace("-", "−") for name, value in values.items())


def over_seeds(values: Sequence[Real]) -> Figure:
    """The mean of one value for each seed, with Student's 95 % interval; none for one seed."""
    return _figure(student_mean(list(values)))


def over_texts(values: Any) -> Figure:
    """The mean of one value for each text, with a 95 % interval from resampled texts."""
    known = np.array([np.nan if each is None else each for each in values], dtype=np.float64)
    return _figure(bootstrap_means(known[:, None])[0])


def known_means(rows: Any) -> NDArray[np.float64]:
    """The mean of each column, `[text, column]`, over the texts where it is known; else NaN."""
    known = np.array(rows, dtype=np.float64)
    seen = ~np.isnan(known)
    total = np.where(seen, known, 0.0).sum(axis=0)
    unknown = np.full(known.shape[1:], np.nan)
    mean: NDArray[np.float64] = np.divide(
        total, seen.sum(axis=0), out=unknown, where=seen.any(axis=0)
    )
    return mean


def compared(
    title: str,
    reading: str,
    ours: Mapping[str, Figure],
    published: Mapping[str, Number],
    over: str = "seeds",
) -> ComparedTable:
    """A table of our figures with the published ones of the same names."""
    rows = (ComparedRow(name, each, published.get(name)) for name, each in ours.items())
    return ComparedTable(title, reading, tuple(rows), over)


_NOT = "not reproduced"


def _figure(found: Estimate) -> Figure:
    return Figure(_known(found.mean), _known(found.low), _known(found.high), found.inputs)


def _known(value: Number) -> Number:
    return None if value is None or isnan(value) else value


def _ends(ours: Figure) -> tuple[Real, Real]:
    """The ends of the interval; the value twice if there is none."""
    value = ours.value or 0.0
    low, high = (value if end is None else end for end in (ours.low, ours.high))
    return low, high


def _on_one_side(ours: Figure, holds: Callable[[Real], bool]) -> str:
    if _known(ours.value) is None:
        return "not tested here"
    ends = [holds(end) for end in (*_ends(ours), ours.value or 0.0)]
    return "reproduced" if all(ends) else "partly" if any(ends) else _NOT
