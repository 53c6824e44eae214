"""What a verdict says, in words."""

from collections.abc import Callable, Collection, Mapping
from dataclasses import dataclass
from math import isfinite

from attlas.auditing.verdict.rules import Measured, Rules
from attlas.mathematics.intervals import Estimate
from attlas.results.verdict import OtherReading

SCALE = "of the way from shuffled scores to the best order there is"


@dataclass(frozen=True)
class Said:
    """All that the words are made of."""

    word: str
    method: str
    reference: str | None
    tested: Mapping[str, Measured]  # by removal
    used: Estimate | None
    needed: int | None
    readings: tuple[OtherReading, ...]
    failing: tuple[str, ...] = ()  # other readings of the weights that surely fail


def sentence(said: Said, rules: Rules) -> str:
    """The answer, in one sentence."""
    return _SENTENCES[said.word](said, rules)


def why(tested: Measured, reference: str | None, rules: Rules) -> str:
    """Why a removal speaks for the weights, against them, or leaves it open."""
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
    said: Said, circular: Collection[tuple[str, str]], families: Mapping[str, str]
) -> tuple[str, ...]:
    """What a reader of the verdict should know besides."""
    found = []
    if said.used is None:
        found.append("Whether the attention is used at all was not tested.")
    if said.reference is None:
        found.append("There was no reference to hold the weights against.")
    names = sorted({name for name, _ in circular if families.get(name) == "reference"})
    if names:
        found.append(
            f"Not taken as the reference, being computed by the removals that test it: "
            f"{', '.join(names)}."
        )
    above = [removal for removal, each in said.tested.items() if each.s.low > 0]
    below = [removal for removal, each in said.tested.items() if each.s.high < 0]
    if above and below:
        found.append(
            f"Removals disagree: {said.method} is above shuffled scores by {_list(above)} and "
            f"below them by {_list(below)}."
        )
    better = [each for each in said.readings if each.better]
    if better:
        found.append(
            f"{len(better)} of {len(said.readings)} methods that use more than the weights come "
            f"further; {better[0].method} by {_points(better[0].gain.value or 0.0)} points."
        )
    return tuple(found)


def _supported(said: Said, rules: Rules) -> str:
    reasons = _reasons(said, list(said.tested), rules)
    return f"The attention weights may be read as an explanation here: {reasons}."


def _not_supported(said: Said, rules: Rules) -> str:
    reasons = _reasons(said, list(said.tested), rules)
    if said.used is not None and said.used.high < rules.delta:
        share = _share(said.used.high)
        reasons = f"exchanging them does at most {share} of what it could, so they are hardly used"
    return f"The attention weights should not be read as an explanation here: {reasons}."


def _partly(said: Said, rules: Rules) -> str:
    if said.failing and {each.finding(rules) for each in said.tested.values()} == {"for"}:
        reasons = _reasons(said, list(said.tested), rules)
        verb = "does" if len(said.failing) == 1 else "do"
        return (
            f"The attention weights may be read as an explanation here as {said.method} reads "
            f"them, and not otherwise: {reasons}; {_list(said.failing)} {verb} no better than "
            "shuffled scores."
        )
    by_finding: dict[str, list[str]] = {"for": [], "against": [], "open": []}
    for removal, each in said.tested.items():
        by_finding[each.finding(rules)].append(removal)
    parts = []
    if by_finding["for"]:
        parts.append(f"they may where tokens are removed by {_list(by_finding['for'])}")
    if by_finding["against"]:
        parts.append(f"they should not by {_list(by_finding['against'])}")
    if by_finding["open"]:
        parts.append(f"it stands at the border by {_list(by_finding['open'])}")
    unlike = by_finding["against"] or by_finding["open"]
    reasons = f" ({_reasons(said, unlike, rules)})" if unlike else ""
    return (
        "The attention weights may be read as an explanation only in part: "
        f"{', '.join(parts)}{reasons}."
    )


def _too_few(said: Said, rules: Rules) -> str:
    tested = min(each.s.inputs for each in said.tested.values())
    return (
        f"Too few texts to tell: {said.method} was tested on {tested}, and about {said.needed} in "
        "all would do."
    )


_SENTENCES: Mapping[str, Callable[[Said, Rules], str]] = {
    "supported": _supported,
    "not supported": _not_supported,
    "partly": _partly,
    "too few texts": _too_few,
}


def _reasons(said: Said, removals: Collection[str], rules: Rules) -> str:
    """Why, removal by removal; once where one reason holds for all of them."""
    tested = [said.tested[name] for name in removals]
    every = _envelope(tested)
    if {each.finding(rules) for each in tested} == {every.finding(rules)}:
        return why(every, said.reference, rules).replace("it ", f"{said.method} ", 1)
    found = [f"by {name}, {why(said.tested[name], said.reference, rules)}" for name in removals]
    return "; ".join(found)


def _envelope(tested: Collection[Measured]) -> Measured:
    """Bounds that hold under every one of these removals."""
    less = [each.less_reference for each in tested if each.less_reference is not None]
    return Measured(
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
