"""The findings of an audit: a few lines, each with its figure, its interval and its limits.

"Surely" means that intervals say so; the p-value of a finding stands beside it.
"""

from collections.abc import Iterator, Sequence

import numpy as np

from attlas.auditing.verdict.p_values import (
    HeldOut,
    above_other,
    above_shuffled,
    above_weights,
    agreement_beside,
)
from attlas.auditing.verdict.verdict import as_figure
from attlas.auditing.work.explained import CONTROLS, SHUFFLED
from attlas.mathematics.intervals import Estimate, bootstrap_means
from attlas.results.support.report_sections import Finding, RemovalPair, ReportTable
from attlas.results.verdict import Verdict

ALIKE = 0.5  # a rank correlation below this is low


def findings(
    verdict: Verdict,
    agreement: Estimate | None,
    removals: Sequence[RemovalPair],
    table: ReportTable,
    held: HeldOut,
) -> tuple[Finding, ...]:
    """At most five lines for the first screen, with unadjusted p-values."""
    lines = [
        *_weights(verdict, held),
        *_better(verdict, held),
        *_control(table, verdict, held),
        *_agreement(agreement, held),
        *_removals(removals),
    ]
    return tuple(lines[:5])


def _weights(verdict: Verdict, held: HeldOut) -> Iterator[Finding]:
    """How good the best reading of the weights is."""
    removal, bounds = next(iter(verdict.bounds.items()))
    s = bounds.s
    if s.value is None or np.isnan(s.value):
        return
    yield Finding(
        f"The weights ({verdict.method})",
        f"On the scale from shuffled scores (0) to the best order (1), {verdict.method} reaches "
        f"{s.value:.2f} when tokens are removed by {removal}.",
        s,
        "standing",
        "That no other reading does as well; see the other methods.",
        (-0.2, 1.0),
        0.0,
        *above_shuffled(held, verdict.method, removal),
    )


def _better(verdict: Verdict, held: HeldOut) -> Iterator[Finding]:
    better = verdict.better_readings
    names = [each.method for each in verdict.readings]
    if not better:
        if verdict.readings:
            first = verdict.readings[0]
            yield Finding(
                "No better reading",
                f"No method that adds values, gradients or propagation is surely a point or more "
                f"above {verdict.method}; the highest is {first.method}.",
                first.gain,
                "standing",
                "That there is none: more texts might show one.",
                (-0.5, 1.0),
                0.0,
                *above_weights(held, verdict.method, first.method, names),
            )
        return
    first = better[0]
    yield Finding(
        f"A better reading: {first.method}",
        f"{first.method} reaches {first.gain.value:.2f} more than {verdict.method} "
        f"({len(better)} of {len(verdict.readings)} other readings are better).",
        first.gain,
        "standing",
        "That it is better on every text: this is a mean over texts.",
        (-0.5, 1.0),
        0.0,
        *above_weights(held, verdict.method, first.method, names),
    )


def _control(table: ReportTable, verdict: Verdict, held: HeldOut) -> Iterator[Finding]:
    """Whether scores made without the model do as well as the weights."""
    places = [
        place
        for place, column in enumerate(table.columns)
        if column.measure == "comprehensiveness" and column.removal in verdict.bounds
    ]
    rows = {row.method: row for row in table.rows}
    own = rows.get(verdict.method)
    controls = [name for name in CONTROLS if name in rows and name != SHUFFLED]
    if not places or own is None or not controls:
        return
    place, removal = places[0], table.columns[places[0]].removal
    known = {name: rows[name].cells[place].figure for name in controls}
    known = {name: each for name, each in known.items() if each.value is not None}
    mine = own.cells[place].figure
    if not known or mine.value is None:
        return
    name = max(known, key=lambda each: known[each].value or 0.0)
    best = known[name]
    above = mine.low is not None and best.high is not None and mine.low > best.high
    verb = "does worse than" if above else "is not surely below"
    yield Finding(
        f"Scores made without the model ({name})",
        f"A control, {CONTROLS[name]}, {verb} {verdict.method} in comprehensiveness "
        f"({best.value:.3f} against {mine.value:.3f}, {removal}).",
        best,
        "table",
        "Why: position and rarity may be correlated with what the model uses.",
        (0.0, _round_up(1.2 * max(mine.high or mine.value, best.high or 0.0))),
        mine.value,
        *above_other(held, "comprehensiveness", removal, verdict.method, name),
    )


def _round_up(value: float) -> float:
    """Round up to one digit, for the end of an axis."""
    if not value > 0:
        return 1.0
    unit = 10.0 ** np.floor(np.log10(value))
    return float(round(np.ceil(value / unit) * unit, 10))


def _agreement(mean: Estimate | None, held: HeldOut) -> Iterator[Finding]:
    if mean is None:
        return
    title = "Methods agree little" if mean.mean < ALIKE else "Methods agree"
    yield Finding(
        title,
        f"Kendall's τ between two methods that use attention is {mean.mean:.2f} on average.",
        as_figure(mean),
        "agreement",
        "Which of them is right: methods may agree and be wrong.",
        (-0.2, 1.0),
        ALIKE,
        *agreement_beside(held.collected, ALIKE),
    )


def _removals(pairs: Sequence[RemovalPair]) -> Iterator[Finding]:
    if not pairs:
        return
    low = min(pairs, key=lambda pair: np.inf if pair.figure.value is None else pair.figure.value)
    if low.figure.value is None:
        return
    yield Finding(
        f"What removing means: {low.one} or {low.other}",
        f"Ranked under one and under the other, the methods correlate at {low.figure.value:.2f} "
        f"({low.measure}).",
        low.figure,
        "removals",
        "Which of them is right: a text without some tokens is a new text either way.",
        (-1.0, 1.0),
        0.0,
    )


def plausibility(held: HeldOut, method: str) -> Finding | None:
    """How well the weights agree with the marks of people; None if there are no marks."""
    collected = held.collected
    table = collected.of_measure("auprc", "")
    names = [name for name in collected.methods if name in table]
    if method not in names:
        return None
    groups, seed = collected.groups_of(table.index.tolist()), collected.seed
    means = bootstrap_means(table[names].to_numpy(dtype=np.float64), seed, groups)
    known = dict(zip(names, means, strict=True))
    best = max(names, key=lambda name: known[name].mean)
    (chance,) = bootstrap_means(table[[SHUFFLED]].to_numpy(dtype=np.float64), seed, groups)
    own = known[method]
    return Finding(
        "What people marked",
        f"{method} ranks the marked words with an average precision of {own.mean:.2f}, shuffled "
        f"scores with {chance.mean:.2f}, and the best method ({best}) with {known[best].mean:.2f}.",
        as_figure(own),
        "plausibility",
        "What the model does: it may use words that people would not mark.",
        (0.0, 1.0),
        chance.mean,
        *above_other(held, "auprc", "", method, SHUFFLED),
    )
