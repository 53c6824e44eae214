"""Where methods stand between their shuffled scores and the best order of tokens there is.

s = Σ (method − shuffled) / Σ (ceiling − shuffled), summed over texts: shuffled scores reach 0 on
average, and beam search reaches 1. For several measures or removals, s is the mean of theirs.
"""

from collections.abc import Collection, Mapping, Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np
import pandas as pd
from scipy.stats import norm

from attlas.errors import UsageError
from attlas.mathematics.intervals import LEVEL, Estimate, ratio_errors, simultaneous_bounds
from attlas.shapes import MethodValues, TextGroups, TextTerms, TextValues

MEASURES = ("comprehensiveness", "sufficiency")
SHUFFLED, CEILING = "shuffled", "ceiling"


@dataclass(frozen=True, eq=False)
class MeasuredValues:
    """The values of one measure on each text, with tokens removed in one way.

    Higher or lower may be better: better is towards the ceiling. A value that is NaN leaves its
    text out, for that method.
    """

    shuffled: TextValues
    ceiling: TextValues
    methods: Mapping[str, TextValues]

    def select(self, texts: TextGroups) -> "MeasuredValues":
        """The values of these texts alone."""
        methods = {name: values[texts] for name, values in self.methods.items()}
        return MeasuredValues(self.shuffled[texts], self.ceiling[texts], methods)


Evidence = Mapping[str, Sequence[MeasuredValues]]  # by removal, one for each measure


@dataclass(frozen=True)
class MethodComparison:
    """A method compared with another one, or with its shuffled scores, under some removals."""

    method: str
    other: str | None  # None: shuffled scores
    removals: tuple[str, ...]


def read_evidence(rows: pd.DataFrame, measures: Collection[str] = MEASURES) -> Evidence:
    """Turn an audit's rows (text, method, measure, removal, value) into arrays over its texts.

    Shuffled scores and the ceiling are methods with these names. A missing row is NaN.
    """
    texts = pd.Index(sorted(rows["text"].unique()))
    evidence: dict[str, list[MeasuredValues]] = {}
    for (removal, _), own in rows[rows["measure"].isin(measures)].groupby(["removal", "measure"]):
        table = own.pivot(index="text", columns="method", values="value").reindex(texts)
        columns = {str(name): table[name].to_numpy(dtype=np.float64) for name in table}
        missing = [name for name in (SHUFFLED, CEILING) if name not in columns]
        if missing:
            raise UsageError(f"the rows of removal {removal!r} have no {' and no '.join(missing)}")
        shuffled, ceiling = columns.pop(SHUFFLED), columns.pop(CEILING)
        evidence.setdefault(str(removal), []).append(MeasuredValues(shuffled, ceiling, columns))
    return evidence


def text_count(evidence: Evidence) -> int:
    """The number of texts in the evidence."""
    return next((len(each.shuffled) for values in evidence.values() for each in values), 0)


def select_texts(evidence: Evidence, texts: TextGroups) -> Evidence:
    """The evidence of these texts alone."""
    return {
        removal: [each.select(texts) for each in values] for removal, values in evidence.items()
    }


def standing(evidence: Evidence, comparison: MethodComparison) -> float:
    """s of a method, or the difference of two; NaN if the ceiling is no better than shuffling."""
    gains, spans = _terms(evidence, [comparison])
    known = ~np.isnan(gains + spans)
    sums = [np.where(known, each, 0.0).sum(axis=0)[0] for each in (gains, spans)]
    return float((sums[0] / np.where(sums[1] == 0, np.nan, sums[1])).mean())


def standings(
    evidence: Evidence,
    comparisons: Sequence[MethodComparison],
    seed: int = 0,
    groups: TextGroups | None = None,
) -> list[Estimate]:
    """s of each comparison, with simultaneous 95 % intervals; all have equally many removals."""
    if not comparisons:
        return []
    return simultaneous_bounds(*_terms(evidence, comparisons), seed, groups)


def text_shares(evidence: Evidence, comparisons: Sequence[MethodComparison]) -> MethodValues:
    """What each text adds to s of each comparison; summed over texts, they give s."""
    gains, spans = _terms(evidence, comparisons)
    known = ~np.isnan(gains + spans)
    whole = np.where(known, spans, 0.0).sum(axis=0)
    shares = np.where(known, gains, 0.0) / np.where(whole == 0, np.nan, whole)
    return np.where(known.any(axis=2), shares.mean(axis=2), np.nan)


def room(
    evidence: Evidence, seed: int = 0, groups: TextGroups | None = None
) -> Mapping[str, Estimate]:
    """How far the ceiling is from shuffled scores, by removal, in units of the measures."""
    distances = [
        np.stack([np.abs(each.ceiling - each.shuffled) for each in values], axis=1)
        for values in evidence.values()
    ]
    table = np.stack(distances, axis=1)
    bounds = simultaneous_bounds(table, np.ones_like(table), seed, groups)
    return dict(zip(evidence, bounds, strict=True))


def texts_for(
    evidence: Evidence,
    comparisons: Sequence[MethodComparison],
    half_width: float,
    groups: TextGroups | None = None,
) -> int | None:
    """Estimate how many texts would shrink all these intervals to this half-width, if possible."""
    gains, spans = _terms(evidence, comparisons)
    errors = ratio_errors(gains, spans, groups)
    if not np.isfinite(errors).any():
        return None
    # With many texts, the largest of several differences is near Bonferroni's bound for it.
    wide = float(norm.ppf(1 - (1 - LEVEL) / (2 * len(comparisons)))) * np.nanmax(errors)
    return ceil(len(gains) * (wide / half_width) ** 2)


def _terms(
    evidence: Evidence, comparisons: Sequence[MethodComparison]
) -> tuple[TextTerms, TextTerms]:
    """What each method gains over the other, and how much there is to gain."""
    gains, spans = [], []
    for each in comparisons:
        terms = [term for removal in each.removals for term in evidence[removal]]
        start = [term.methods[each.other] if each.other else term.shuffled for term in terms]
        gained = [term.methods[each.method] - low for term, low in zip(terms, start, strict=True)]
        gains.append(np.stack(gained, axis=1))
        spans.append(np.stack([term.ceiling - term.shuffled for term in terms], axis=1))
    return np.stack(gains, axis=1), np.stack(spans, axis=1)
