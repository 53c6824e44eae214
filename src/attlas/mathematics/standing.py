"""Where methods stand between their shuffled scores and the best order there is.

s = Σ (method − shuffled) / Σ (ceiling − shuffled), the sums over texts: 0 is what shuffled scores
reach on average and 1 what beam search does. Several measures or removals: the mean of their s.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np
import pandas as pd
from scipy.stats import norm

from attlas.errors import UsageError
from attlas.mathematics.intervals import LEVEL, Estimate, ratio_errors, simultaneous_bounds
from attlas.shapes import MethodValues, TextGroups, TextParts, TextValues

MEASURES = ("comprehensiveness", "sufficiency")
SHUFFLED, CEILING = "shuffled", "ceiling"


@dataclass(frozen=True, eq=False)
class Reached:
    """What is reached on each text by one measure, tokens removed in one way.

    Whether high or low is better need not be said: it is towards the ceiling. A value that is not
    a number leaves its text out, for that method.
    """

    shuffled: TextValues
    ceiling: TextValues
    methods: Mapping[str, TextValues]

    def of(self, texts: TextGroups) -> "Reached":
        """The same of these texts alone."""
        methods = {name: values[texts] for name, values in self.methods.items()}
        return Reached(self.shuffled[texts], self.ceiling[texts], methods)


Evidence = Mapping[str, Sequence[Reached]]  # by removal, one for each measure


@dataclass(frozen=True)
class Compared:
    """A method under some removals, less another where one is named."""

    method: str
    less: str | None
    removals: tuple[str, ...]


def evidence(rows: pd.DataFrame, measures: Collection[str] = MEASURES) -> Evidence:
    """An audit's rows (text, method, measure, removal, value) as arrays over its texts, in order.

    Shuffled scores and the ceiling are methods by these names; what has no row is not a number.
    """
    texts = pd.Index(sorted(rows["text"].unique()))
    found: dict[str, list[Reached]] = {}
    for (removal, _), own in rows[rows["measure"].isin(measures)].groupby(["removal", "measure"]):
        table = own.pivot(index="text", columns="method", values="value").reindex(texts)
        columns = {str(name): table[name].to_numpy(dtype=np.float64) for name in table}
        missing = [name for name in (SHUFFLED, CEILING) if name not in columns]
        if missing:
            raise UsageError(f"the rows of removal {removal!r} have no {' and no '.join(missing)}")
        shuffled, ceiling = columns.pop(SHUFFLED), columns.pop(CEILING)
        found.setdefault(str(removal), []).append(Reached(shuffled, ceiling, columns))
    return found


def text_count(found: Evidence) -> int:
    """How many texts there is evidence of."""
    return next((len(part.shuffled) for parts in found.values() for part in parts), 0)


def of_texts(found: Evidence, texts: TextGroups) -> Evidence:
    """The evidence of these texts alone."""
    return {removal: [each.of(texts) for each in parts] for removal, parts in found.items()}


def standing(found: Evidence, compared: Compared) -> float:
    """s, or the difference of two; not a number where the ceiling is no better than shuffling."""
    above, below = _parts(found, [compared])
    known = ~np.isnan(above + below)
    sums = [np.where(known, each, 0.0).sum(axis=0)[0] for each in (above, below)]
    return float((sums[0] / np.where(sums[1] == 0, np.nan, sums[1])).mean())


def standings(
    found: Evidence,
    compared: Sequence[Compared],
    seed: int = 0,
    groups: TextGroups | None = None,
) -> list[Estimate]:
    """s of each, with 95 % intervals that hold all at once; all under as many removals."""
    return simultaneous_bounds(*_parts(found, compared), seed, groups) if compared else []


def text_shares(found: Evidence, compared: Sequence[Compared]) -> MethodValues:
    """What each text adds to s of each, or to the difference of two: over texts they sum to it."""
    above, below = _parts(found, compared)
    known = ~np.isnan(above + below)
    whole = np.where(known, below, 0.0).sum(axis=0)
    shares = np.where(known, above, 0.0) / np.where(whole == 0, np.nan, whole)
    return np.where(known.any(axis=2), shares.mean(axis=2), np.nan)


def room(
    found: Evidence, seed: int = 0, groups: TextGroups | None = None
) -> Mapping[str, Estimate]:
    """How far the ceiling is from shuffled scores, by removal, in units of the measures."""
    spans = [
        np.stack([np.abs(each.ceiling - each.shuffled) for each in parts], axis=1)
        for parts in found.values()
    ]
    spread = np.stack(spans, axis=1)
    bounds = simultaneous_bounds(spread, np.ones_like(spread), seed, groups)
    return dict(zip(found, bounds, strict=True))


def texts_for(
    found: Evidence,
    compared: Sequence[Compared],
    half_width: float,
    groups: TextGroups | None = None,
) -> int | None:
    """About how many texts would bring all these intervals down to this half-width, if known."""
    above, below = _parts(found, compared)
    errors = ratio_errors(above, below, groups)
    if not np.isfinite(errors).any():
        return None
    # With many texts the largest of several differences is near Bonferroni's bound for it.
    wide = float(norm.ppf(1 - (1 - LEVEL) / (2 * len(compared)))) * np.nanmax(errors)
    return ceil(len(above) * (wide / half_width) ** 2)


def _parts(found: Evidence, compared: Sequence[Compared]) -> tuple[TextParts, TextParts]:
    """What each is above, and of how much, `[text, statistic, part]`."""
    above, below = [], []
    for each in compared:
        parts = [part for removal in each.removals for part in found[removal]]
        start = [part.methods[each.less] if each.less else part.shuffled for part in parts]
        gains = [part.methods[each.method] - low for part, low in zip(parts, start, strict=True)]
        above.append(np.stack(gains, axis=1))
        below.append(np.stack([part.ceiling - part.shuffled for part in parts], axis=1))
    return np.stack(above, axis=1), np.stack(below, axis=1)
