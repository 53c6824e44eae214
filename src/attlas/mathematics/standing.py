"""Where methods stand between a random order of the tokens and the best one.

s = Σ location / Σ location of the best order, summed over texts: scores that say nothing reach 0,
and the order of what matters reaches 1. For several removals, s is the mean of theirs.
"""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from attlas.mathematics.grouping import summed_by_group
from attlas.mathematics.intervals import (
    UNSEEN,
    Estimate,
    allow_unseen,
    clopper_pearson,
    simultaneous_bounds,
)
from attlas.shapes import TextGroups, TextTerms, TextValues

RANGE = 1.0  # s lies between −1, the reverse of the best order, and 1


@dataclass(frozen=True, eq=False)
class Locations:
    """How much of what matters each method comes upon early, on each text, under one removal.

    A value that is NaN leaves its text out, for that method.
    """

    best: TextValues  # of the best order
    importance: TextValues  # how much all tokens of the text matter together
    methods: Mapping[str, TextValues]

    def select(self, texts: NDArray[np.int64]) -> "Locations":
        """The values of these texts alone."""
        methods = {name: values[texts] for name, values in self.methods.items()}
        return Locations(self.best[texts], self.importance[texts], methods)


Evidence = Mapping[str, Locations]  # by removal


@dataclass(frozen=True)
class MethodComparison:
    """A method compared with another one, or with a random order, under some removals."""

    method: str
    other: str | None  # None: a random order
    removals: tuple[str, ...]


def text_count(evidence: Evidence) -> int:
    """The number of texts in the evidence."""
    return next((len(each.best) for each in evidence.values()), 0)


def select_texts(evidence: Evidence, texts: NDArray[np.int64]) -> Evidence:
    """The evidence of these texts alone."""
    return {removal: each.select(texts) for removal, each in evidence.items()}


def standing(evidence: Evidence, comparison: MethodComparison) -> float:
    """s of a method, or the difference of two; NaN if the best order finds nothing."""
    gains, rooms = _terms(evidence, [comparison])
    known = ~np.isnan(gains + rooms)
    sums = [np.where(known, each, 0.0).sum(axis=0)[0] for each in (gains, rooms)]
    return float((sums[0] / np.where(sums[1] == 0, np.nan, sums[1])).mean())


def standings(
    evidence: Evidence,
    comparisons: Sequence[MethodComparison],
    seed: int = 0,
    groups: TextGroups | None = None,
) -> list[Estimate]:
    """s of each comparison, with simultaneous 95 % intervals; all have equally many removals.

    An interval stays in the range of what it is about. It is at least as wide as the few texts that
    carry most of the sum demand: what none of them shows may still hold for others.
    """
    if not comparisons:
        return []
    gains, rooms = _terms(evidence, comparisons)
    found = simultaneous_bounds(gains, rooms, seed, groups)
    widened = []
    for number, (each, asked) in enumerate(zip(found, comparisons, strict=True)):
        fewest = min(effective_texts(column, groups) for column in rooms[:, number].T)
        widened.append(_bounded(each, fewest, RANGE if asked.other is None else 2 * RANGE))
    return widened


def _bounded(found: Estimate, effective: float, largest: float) -> Estimate:
    """Room for what is not seen: the best order on 3 of k texts, or its reverse."""
    unseen = min(UNSEEN / effective, 1.0) if effective > 0 else 1.0
    low = min(found.low, found.mean - unseen * (RANGE + found.mean))
    high = max(found.high, found.mean + unseen * (RANGE - found.mean))
    mean, low, high = (max(min(each, largest), -largest) for each in (found.mean, low, high))
    return replace(found, mean=mean, low=low, high=high)


def effective_texts(rooms: TextValues, groups: TextGroups | None = None) -> float:
    """The number of texts, all alike, that would give a sum as certain as these do."""
    values = summed_by_group(np.nan_to_num(rooms), groups)
    squares = float((values**2).sum())
    return float(max(values.sum(), 0.0) ** 2 / squares) if squares > 0 else 0.0


def typical_rooms(
    evidence: Evidence, seed: int = 0, groups: TextGroups | None = None
) -> dict[str, Estimate]:
    """How much the best order finds on those of these texts that have something to find.

    A mean over texts in which each counts as much as it has; noise around nothing gives nothing.
    """
    rooms = np.stack([np.nan_to_num(each.best) for each in evidence.values()], axis=1)[..., None]
    sizes = np.abs(rooms)
    found = simultaneous_bounds(rooms * sizes, sizes, seed, groups)
    nothing = Estimate(0.0, 0.0, 0.0, len(rooms))
    return {
        name: nothing if np.isnan(each.mean) else each
        for name, each in zip(evidence, found, strict=True)
    }


def texts_with_room(rooms: TextValues, least: float, groups: TextGroups | None = None) -> Estimate:
    """The share of texts, or of groups of them, on which the best order finds at least so much."""
    has = summed_by_group(np.nan_to_num(rooms) >= least, groups) > 0
    return clopper_pearson(int(has.sum()), len(has))


def mean_rooms(
    evidence: Evidence, seed: int = 0, groups: TextGroups | None = None
) -> dict[str, Estimate]:
    """How much the best order finds on a text, by removal."""
    rooms = np.stack([np.nan_to_num(each.best) for each in evidence.values()], axis=1)
    return _shares(evidence, rooms, np.ones_like(rooms), seed, groups)


def contrasts(
    evidence: Evidence, seed: int = 0, groups: TextGroups | None = None
) -> dict[str, Estimate]:
    """Which share of all importance the best order comes upon early, by removal.

    Zero if all tokens matter alike, and one if a single token of each text does.
    """
    rooms, totals = (
        np.stack([np.nan_to_num(getattr(each, name)) for each in evidence.values()], axis=1)
        for name in ("best", "importance")
    )
    return _shares(evidence, rooms, totals, seed, groups)


def _shares(
    evidence: Evidence,
    parts: NDArray[np.float64],
    totals: NDArray[np.float64],
    seed: int,
    groups: TextGroups | None,
) -> dict[str, Estimate]:
    """Sums of parts by sums of totals, `[text, removal]`, with room for texts not seen."""
    found = simultaneous_bounds(parts[..., None], totals[..., None], seed, groups)
    return {
        name: allow_unseen(each, weights, groups)
        for name, each, weights in zip(evidence, found, totals.T, strict=True)
    }


def _terms(
    evidence: Evidence, comparisons: Sequence[MethodComparison]
) -> tuple[TextTerms, TextTerms]:
    """What each method finds beyond the other, and how much there is to find."""
    gains, rooms = [], []
    for each in comparisons:
        found = [evidence[removal] for removal in each.removals]
        other = [one.methods[each.other] if each.other else 0.0 for one in found]
        gained = [one.methods[each.method] - low for one, low in zip(found, other, strict=True)]
        gains.append(np.stack(gained, axis=1))
        rooms.append(np.stack([one.best for one in found], axis=1))
    return np.stack(gains, axis=1), np.stack(rooms, axis=1)
