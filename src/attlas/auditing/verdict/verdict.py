"""The verdict on the attention weights, by the rules in `rules.py`."""

from collections.abc import Collection, Mapping, Sequence
from math import ceil, isfinite, isnan

from attlas.auditing.verdict import wording
from attlas.auditing.verdict.rules import RemovalTest, Rules, decide
from attlas.errors import UsageError
from attlas.mathematics.grouping import halves
from attlas.mathematics.intervals import Estimate
from attlas.mathematics.standing import (
    Evidence,
    MethodComparison,
    room,
    select_texts,
    standing,
    standings,
    text_count,
    texts_for,
)
from attlas.results.support.report_sections import Figure
from attlas.results.verdict import Bounds, OtherReading, Verdict
from attlas.shapes import TextGroups

A_POINT = 0.01  # of s: a smaller gain makes no better reading


def verdict(
    evidence: Evidence,
    families: Mapping[str, str],
    *,
    circular: Collection[tuple[str, str]] = (),
    used: Estimate | None = None,
    rules: Rules | None = None,
    groups: TextGroups | None = None,
    seed: int = 0,
) -> Verdict:
    """Judge the attention weights by what methods reach on each text.

    `families` holds the family of each method that takes part; leave out controls. `circular` holds
    pairs (method, removal) that make the method unfit as the reference. `used` is the effect of
    exchanging the attention as a share of the largest possible effect, if that was tested. Texts of
    a group stay in one half.
    """
    rules = rules or Rules()
    if text_count(evidence) < 2:
        raise UsageError(f"a verdict needs at least two texts, not {text_count(evidence)}")
    first, second = halves(text_count(evidence), groups, seed)
    chosen, held_out = select_texts(evidence, first), select_texts(evidence, second)
    own = None if groups is None else groups[second]
    method, reference = _choose(chosen, families, {name for name, _ in circular})
    tested = _test(held_out, method, reference, seed, own)
    failing = _failing(held_out, families, method, rules, seed, own)
    word = decide(tested.values(), used, rules, failing)
    readings = _readings(held_out, families, method, seed, own)
    needed = None
    if word == "too few texts":
        needed = _texts_needed(
            evidence, tested, _questions(evidence, method, reference), rules, groups
        )
    test = wording.WeightsTest(word, method, reference, tested, used, needed, readings, failing)
    return Verdict(
        word,
        wording.sentence(test, rules),
        method,
        reference,
        {removal: _bounds(each, reference, rules) for removal, each in tested.items()},
        len(first),
        len(second),
        needed,
        readings,
        wording.notes(test, circular, families),
    )


def _choose(
    chosen: Evidence, families: Mapping[str, str], circular: Collection[str]
) -> tuple[str, str | None]:
    """Apply rule 1: the best reading of the weights, and the best reference."""

    def best(family: str) -> str | None:
        names = [name for name in _of_family(chosen, families, family) if name not in circular]
        standing_of = {
            name: standing(chosen, MethodComparison(name, None, tuple(chosen))) for name in names
        }
        known = {name: -float("inf") if isnan(s) else s for name, s in standing_of.items()}
        return max(names, key=known.__getitem__, default=None)

    method = best("W")
    if method is None:
        raise UsageError("a verdict on the weights needs a method of family W; there is none")
    return method, best("reference")


def _of_family(evidence: Evidence, families: Mapping[str, str], family: str) -> list[str]:
    """The methods of a family that have values for every removal and every measure."""
    every = [each for own in evidence.values() for each in own]
    return [
        name
        for name, own in families.items()
        if own == family and all(name in each.methods for each in every)
    ]


def _questions(evidence: Evidence, method: str, reference: str | None) -> list[MethodComparison]:
    """s of the method under each removal, and its difference from that of the reference."""
    starts = [None] if reference is None else [None, reference]
    return [MethodComparison(method, less, (removal,)) for less in starts for removal in evidence]


def _test(
    test: Evidence, method: str, reference: str | None, seed: int, groups: TextGroups | None
) -> dict[str, RemovalTest]:
    questions = _questions(test, method, reference)
    answers = dict(zip(questions, standings(test, questions, seed, groups), strict=True))
    rooms = room(test, seed, groups)
    return {
        removal: RemovalTest(
            answers[MethodComparison(method, None, (removal,))],
            answers.get(MethodComparison(method, reference, (removal,))) if reference else None,
            rooms[removal],
        )
        for removal in test
    }


def _failing(
    test: Evidence,
    families: Mapping[str, str],
    method: str,
    rules: Rules,
    seed: int,
    groups: TextGroups | None,
) -> tuple[str, ...]:
    """The other readings of the weights that are surely below δ under every removal."""
    others = [name for name in _of_family(test, families, "W") if name != method]
    questions = [MethodComparison(name, None, (removal,)) for name in others for removal in test]
    bounds = dict(zip(questions, standings(test, questions, seed, groups), strict=True))
    return tuple(
        name
        for name in others
        if all(
            bounds[MethodComparison(name, None, (removal,))].high < rules.delta for removal in test
        )
    )


def _readings(
    test: Evidence,
    families: Mapping[str, str],
    method: str,
    seed: int,
    groups: TextGroups | None,
) -> tuple[OtherReading, ...]:
    """The methods of V and P over all removals, the highest first, with simultaneous bounds.

    A reading is better if it is surely above the weights, by at least a point.
    """
    removals = tuple(test)
    names = [name for family in "VP" for name in _of_family(test, families, family)]
    questions = [
        MethodComparison(name, less, removals) for less in (None, method) for name in names
    ]
    answers = standings(test, questions, seed, groups)
    readings = [
        OtherReading(
            name,
            families[name],
            as_figure(s),
            as_figure(gain),
            gain.low > 0 and gain.mean >= A_POINT,
        )
        for name, s, gain in zip(names, answers, answers[len(names) :], strict=False)
    ]
    return tuple(sorted(readings, key=lambda each: -(each.s.value or 0.0)))


def _texts_needed(
    evidence: Evidence,
    tested: Mapping[str, RemovalTest],
    questions: Sequence[MethodComparison],
    rules: Rules,
    groups: TextGroups | None,
) -> int:
    """About how many texts would suffice in all; half of them are tested on."""
    by_errors = texts_for(evidence, questions, rules.delta, groups) or 0
    by_widths = [
        text_count(evidence) * (each.open_width(rules) / (2 * rules.delta)) ** 2
        for each in tested.values()
        if each.s.inputs >= rules.least_texts and isfinite(each.open_width(rules))
    ]
    return max(2 * rules.least_texts, 2 * by_errors, ceil(max(by_widths, default=0.0)))


def _bounds(tested: RemovalTest, reference: str | None, rules: Rules) -> Bounds:
    less = None if tested.less_reference is None else as_figure(tested.less_reference)
    why = wording.why(tested, reference, rules)
    return Bounds(as_figure(tested.s), less, tested.finding(rules), why)


def as_figure(estimate: Estimate) -> Figure:
    """An estimate in the form that reports hold."""
    return Figure(estimate.mean, estimate.low, estimate.high, estimate.inputs)
