"""The findings of an audit: a few lines, each with its figure, its interval and its limits.

Each sentence is worded by the interval that stands beside it.
"""

from collections.abc import Iterator, Sequence
from math import floor

import numpy as np

from attlas.auditing.collected import Collected
from attlas.auditing.verdict.verdict import as_figure
from attlas.auditing.verdict.wording import REMOVED, control_name
from attlas.auditing.work.explained import SHUFFLED
from attlas.mathematics.intervals import Estimate, bootstrap_means
from attlas.results.support.report_sections import Figure, Finding, RemovalPair, Standing
from attlas.results.support.verdict import Bounds, Verdict

PLAIN = "raw_attention"  # the weights that no method reads
MOST = 0.7  # of what matters
ALIKE = 0.5  # a rank correlation below this is low


def findings(
    verdict: Verdict,
    agreement: Estimate | None,
    removals: Sequence[RemovalPair],
    standings: Sequence[Standing] = (),
) -> tuple[Finding, ...]:
    """At most five lines for the first screen."""
    removal, bounds = next(iter(verdict.bounds.items()))
    lines = [
        *_where(verdict, removal, bounds),
        *_as_they_are(verdict, removal, standings),
        *_control(removal, bounds),
        *_reference(removal, bounds),
        *_better(verdict),
        *_used(verdict),
        *_agreement(agreement),
        *_removals(removals),
    ]
    return tuple(lines[:5])


def _where(verdict: Verdict, removal: str, bounds: Bounds) -> Iterator[Finding]:
    if not _is_known(bounds.s.value):
        return
    read = "" if verdict.method == PLAIN else f"Read as {verdict.method}, "
    yield Finding(
        f"{read}attention {_found(bounds.s)}" if read else f"Attention {_found(bounds.s)}",
        f"Read as {verdict.method}, they find {bounds.s.value:.2f} when tokens are "
        f"{REMOVED.get(removal, removal)}: 0 is chance, 1 as much as can be found.",
        bounds.s,
        "standing",
        "Which way a token pulls: weights have no sign.",
        _span(bounds.s),
        0.0,
    )


def _as_they_are(
    verdict: Verdict, removal: str, standings: Sequence[Standing]
) -> Iterator[Finding]:
    """What the weights find that no method reads, if that is surely less."""
    own = next((e.figure for e in standings if (e.method, e.removal) == (PLAIN, removal)), None)
    least = verdict.bounds[removal].s.low
    if own is None or own.high is None or least is None or not own.high < least:
        return  # also where nothing can be found, and the figures are no numbers
    yield Finding(
        f"Taken as it is, attention {_found(own)}",
        f"The weights of the last layer ({PLAIN}) find {own.value:z.2f} when tokens are "
        f"{REMOVED.get(removal, removal)}.".replace("-", "−"),
        own,
        "standing",
        "That they are of no use: another method may read them.",
        _span(own),
        0.0,
    )


def _span(s: Figure) -> tuple[float, float]:
    """The ends of a plot of what is found: from a little below chance, or as far as it goes."""
    return min(-0.2, floor(10 * (s.low or 0.0)) / 10), 1.0


def _found(s: Figure) -> str:
    """How much attention finds, worded by the interval."""
    assert s.low is not None and s.high is not None
    if s.high < 0:
        return "finds less than chance: it points at what matters least"
    if s.low <= 0:
        return "may find no more than chance"
    if s.low > MOST:
        return "finds most of what matters"
    if s.low > 0.5:
        return "finds more than half of what matters"
    if s.high < 0.5:
        return "finds less than half of what matters"
    if s.high > MOST:
        return "finds some or most of what matters"
    return "finds about half of what matters"


def _control(removal: str, bounds: Bounds) -> Iterator[Finding]:
    """Whether scores made without the model do as well as the weights."""
    less = bounds.less_control
    if less is None or not _is_known(less.value) or bounds.control is None:
        return
    assert less.low is not None and less.high is not None
    says, title = "perhaps no more", "Perhaps no better than"
    if less.low > 0:
        says, title = "surely more", "Surely better than"
    elif less.high < 0:
        says, title = "surely less", "Surely worse than"
    yield Finding(
        f"{title} a simple rule: {_rule(bounds.control)}",
        f"Beside {control_name(bounds.control)}, the weights find {less.value:+z.2f} when tokens "
        f"are {REMOVED.get(removal, removal)}: {says}.".replace("-", "−"),
        less,
        "standing",
        "Why it finds what it finds: place and rarity may go with what the model uses.",
        (-0.5, 1.0),
        0.0,
        difference=True,
    )


def _rule(control: str) -> str:
    names = {"position": "the first words first", "frequency": "the rarest words first"}
    return names.get(control, "the weights of another text")


def _reference(removal: str, bounds: Bounds) -> Iterator[Finding]:
    less = bounds.less_reference
    if less is None or not _is_known(less.value) or bounds.reference is None:
        return
    assert less.low is not None and less.high is not None
    says, title = "as far as these texts tell, about as much", "About as good as"
    if less.high < 0:
        says, title = "surely less", "Surely worse than"
    elif less.low > 0:
        says, title = "surely more", "Surely better than"
    yield Finding(
        f"{title} the best method without attention: {bounds.reference}",
        f"Beside {bounds.reference}, the weights find {less.value:+z.2f} when tokens are "
        f"{REMOVED.get(removal, removal)}: {says}.".replace("-", "−"),
        less,
        "standing",
        "That no other method is better.",
        (-1.0, 0.5),
        0.0,
        difference=True,
    )


def _better(verdict: Verdict) -> Iterator[Finding]:
    better = verdict.better_readings
    if not better:
        return
    first = better[0]
    yield Finding(
        f"A better reading: {first.method}",
        f"{first.method} finds {first.gain.value:.2f} more than the weights ({len(better)} of "
        f"{len(verdict.readings)} readings that use more than the weights find surely more).",
        first.gain,
        "standing",
        "That it is better on every text: this is a mean over texts.",
        (-0.5, 1.0),
        0.0,
        difference=True,
    )


def _used(verdict: Verdict) -> Iterator[Finding]:
    if verdict.used is None or not _is_known(verdict.used.value):
        return
    yield Finding(
        "How much the answers depend on attention",
        f"Shuffling all attention weights moves the answer by {verdict.used.value:.3f} of "
        "probability on average.",
        verdict.used,
        "trials",
        "That the weights are right: only that the answer depends on them.",
        (0.0, 1.0),
        None,
    )


def _agreement(mean: Estimate | None) -> Iterator[Finding]:
    if mean is None:
        return
    title = "How far methods agree"
    if mean.high < ALIKE:
        title = "Methods agree little"
    elif mean.low > ALIKE:
        title = "Methods agree"
    yield Finding(
        title,
        f"Two methods that use attention rank the tokens alike at {mean.mean:.2f} on average "
        "(Kendall's τ: 1 is the same order, 0 none).",
        as_figure(mean),
        "agreement",
        "Which of them is right: methods may agree and be wrong.",
        (-0.2, 1.0),
        ALIKE,
    )


def _removals(pairs: Sequence[RemovalPair]) -> Iterator[Finding]:
    if not pairs:
        return
    low = min(pairs, key=lambda pair: np.inf if pair.figure.value is None else pair.figure.value)
    if low.figure.value is None:
        return
    yield Finding(
        f"What removing means: {low.one} or {low.other}",
        f"The order of the methods under one and under the other correlates at "
        f"{low.figure.value:.2f} ({low.measure}; 1 is the same order).",
        low.figure,
        "removals",
        "Which of them is right: a text without some tokens is a new text either way.",
        (-1.0, 1.0),
        0.0,
    )


def plausibility(collected: Collected, method: str) -> Finding | None:
    """How well the weights agree with the marks of people; None if there are no marks."""
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
    )


def _is_known(value: float | int | None) -> bool:
    return value is not None and not np.isnan(value)
