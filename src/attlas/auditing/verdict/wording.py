"""The sentences of a verdict."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from math import isfinite

from attlas.auditing.verdict.rules import RemovalTest, Rules
from attlas.mathematics.intervals import Estimate
from attlas.results.verdict import OtherReading

SCALE = "of the way from shuffled scores to the best order there is"


@dataclass(frozen=True)
class WeightsTest:
    """What was tested and what came out: everything that the sentences say."""

    word: str
    method: str
    reference: str | None
    tested: Mapping[str, RemovalTest]  # by removal
    used: Estimate | None
    needed: int | None
    readings: tuple[OtherReading, ...]
    failing: tuple[str, ...] = ()  # other readings of the weights that surely fail


def sentence(test: WeightsTest, rules: Rules) -> str:
    """The answer in one sentence."""
    return _SENTENCES[test.word](test, rules)


def why(tested: RemovalTest, reference: str | None, rules: Rules) -> str:
    """Why a removal speaks for the weights, against them, or leaves the question open."""
    s, less, delta = tested.s, tested.less_reference, rules.delta
    if tested.finding(rules) == "against":
        if tested.room.high < rules.least_room:
            return f"no token matters: the best order there is moves less than {rules.least_room}"
        if s.high <= 0:
            return "it does no better than shuffled scores"
        if s.high < delta:
            return f"it comes at most {_share(s.high)} {SCALE}"
        assert less is not None
        distance = f"at least {_points(-less.high)} points behind {reference}"
        return f"it stays {distance}, shuffled scores being at 0 and the best order there is at 100"
    if not isfinite(s.low) or not (less is None or isfinite(less.low)):
        return "these are too few texts to say anything"
    if less is None:
        return f"it comes {_range(s)} {SCALE}, and there is no reference to hold it against"
    if tested.finding(rules) == "for":
        return f"it comes at least {_share(s.low)} {SCALE}, {_beside(less, reference)}"
    distance = f"{_points(less.low)} to {_points(less.high)} points from {reference}"
    return f"it comes {_range(s)} {SCALE}, {distance}"


def notes(
    test: WeightsTest, circular: Collection[tuple[str, str]], families: Mapping[str, str]
) -> tuple[str, ...]:
    """What else a reader of the verdict should know."""
    lines = []
    if test.used is None:
        lines.append("Whether the attention is used at all was not tested.")
    if test.reference is None:
        lines.append("There was no reference to hold the weights against.")
    names = sorted({name for name, _ in circular if families.get(name) == "reference"})
    if names:
        lines.append(
            f"Not taken as the reference, being computed by the removals that test it: "
            f"{', '.join(names)}."
        )
    above = [removal for removal, each in test.tested.items() if each.s.low > 0]
    below = [removal for removal, each in test.tested.items() if each.s.high < 0]
    if above and below:
        lines.append(
            f"Removals disagree: {test.method} is above shuffled scores by {_list(above)} and "
            f"below them by {_list(below)}."
        )
    better = [each for each in test.readings if each.better]
    if better:
        lines.append(
            f"{len(better)} of {len(test.readings)} methods that use more than the weights come "
            f"further; {better[0].method} by {_points(better[0].gain.value or 0.0)} points."
        )
    return tuple(lines)


def _supported(test: WeightsTest, rules: Rules) -> str:
    reasons = _reasons(test, list(test.tested), rules)
    return f"The attention weights may be read as an explanation here: {reasons}."


def _not_supported(test: WeightsTest, rules: Rules) -> str:
    reasons = _reasons(test, list(test.tested), rules)
    if test.used is not None and test.used.high < rules.delta:
        share = _share(test.used.high)
        reasons = f"exchanging them does at most {share} of what it could, so they are hardly used"
    return f"The attention weights should not be read as an explanation here: {reasons}."


def _partly(test: WeightsTest, rules: Rules) -> str:
    if test.failing and {each.finding(rules) for each in test.tested.values()} == {"for"}:
        reasons = _reasons(test, list(test.tested), rules)
        verb = "does" if len(test.failing) == 1 else "do"
        return (
            f"The attention weights may be read as an explanation here as {test.method} reads "
            f"them, and not otherwise: {reasons}; {_list(test.failing)} {verb} no better than "
            "shuffled scores."
        )
    by_finding: dict[str, list[str]] = {"for": [], "against": [], "open": []}
    for removal, each in test.tested.items():
        by_finding[each.finding(rules)].append(removal)
    clauses = []
    if by_finding["for"]:
        clauses.append(f"they may where tokens are removed by {_list(by_finding['for'])}")
    if by_finding["against"]:
        clauses.append(f"they should not by {_list(by_finding['against'])}")
    if by_finding["open"]:
        clauses.append(f"it stands at the border by {_list(by_finding['open'])}")
    unlike = by_finding["against"] or by_finding["open"]
    reasons = f" ({_reasons(test, unlike, rules)})" if unlike else ""
    return (
        "The attention weights may be read as an explanation only in part: "
        f"{', '.join(clauses)}{reasons}."
    )


def _too_few(test: WeightsTest, rules: Rules) -> str:
    tested = min(each.s.inputs for each in test.tested.values())
    return (
        f"Too few texts to tell: {test.method} was tested on {tested}, and about {test.needed} in "
        "all would do."
    )


_SENTENCES: Mapping[str, Callable[[WeightsTest, Rules], str]] = {
    "supported": _supported,
    "not supported": _not_supported,
    "partly": _partly,
    "too few texts": _too_few,
}


def _reasons(test: WeightsTest, removals: Collection[str], rules: Rules) -> str:
    """The reason for each removal, or one reason if it holds for all of them."""
    tested = [test.tested[name] for name in removals]
    every = _envelope(tested)
    if {each.finding(rules) for each in tested} == {every.finding(rules)}:
        return why(every, test.reference, rules).replace("it ", f"{test.method} ", 1)
    reasons = [f"by {name}, {why(test.tested[name], test.reference, rules)}" for name in removals]
    return "; ".join(reasons)


def _envelope(tested: Collection[RemovalTest]) -> RemovalTest:
    """Bounds that hold under all of these removals."""
    less = [each.less_reference for each in tested if each.less_reference is not None]
    return RemovalTest(
        _widest([each.s for each in tested]),
        _widest(less) if less else None,
        _widest([each.room for each in tested]),
    )


def _widest(estimates: Collection[Estimate]) -> Estimate:
    low, high = (min(each.low for each in estimates), max(each.high for each in estimates))
    return Estimate((low + high) / 2, low, high, min(each.inputs for each in estimates))


def _beside(less: Estimate, reference: str | None) -> str:
    if less.low > 0:
        return f"ahead of {reference}"
    return f"at most {_points(-less.low)} points behind {reference}"


def _range(s: Estimate) -> str:
    return f"{_share(s.low)} to {_share(s.high)}"


def _share(value: float) -> str:
    return f"{_points(value)} %"


def _points(value: float) -> str:
    return f"{100 * value + 0.0:.0f}".replace("-", "−")


def _list(names: Collection[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
