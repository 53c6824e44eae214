"""The sentences of a verdict, each worded by the interval that stands beside it."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from math import isfinite

from attlas.auditing.verdict.rules import ENOUGH_SPLITS, RemovalTest, Rules, is_unused
from attlas.mathematics.intervals import Estimate
from attlas.results.verdict import Direction

BEST = "of what the best order finds"


@dataclass(frozen=True)
class WeightsTest:
    """What was tested and what came out: everything that the sentences say."""

    word: str
    method: str
    tested: Mapping[str, RemovalTest]  # by removal
    used: Estimate | None
    controls: Mapping[str, str | None]  # the best, by removal
    references: Mapping[str, str | None]
    needed: int | None
    texts: int
    same_word: float
    rules: Rules

    def removals(self, finding: str) -> list[str]:
        """The removals with this finding."""
        return [name for name, each in self.tested.items() if each.finding(self.rules) == finding]

    @property
    def is_unused(self) -> bool:
        """Whether the attention is surely not used."""
        return is_unused(self.used, self.rules)


def sentence(test: WeightsTest) -> str:
    """The answer to "where" in one sentence."""
    return _SENTENCES[test.word](test)


def why(test: WeightsTest, removal: str) -> str:
    """Why a removal speaks for the weights, against them, or leaves the question open."""
    own, rules = test.tested[removal], test.rules
    if own.is_flat(rules):
        return _flat(own, rules)
    reached = f"they find {_range(own.s)} {BEST}"
    if own.is_empty(rules):
        return f"no token matters on these texts, and {rules.least_texts} are needed to say so"
    if own.effective < rules.least_effective:
        return (
            f"only about {own.effective:.0f} of the texts have something to find, and "
            f"{rules.least_effective:.0f} are needed"
        )
    if own.s.high < rules.floor:
        return f"they find at most {_percent(own.s.high)} {BEST}"
    control, reference = test.controls[removal], test.references[removal]
    if own.beats_control(rules) is False:
        return f"{reached}, which is surely not more than {_control_name(control)} finds"
    beside = [reached]
    if own.beats_control(rules) is None and own.less_control is not None:
        beside.append(f"{_beside(own.less_control)} {_control_name(control)}")
    if own.less_reference is None:
        beside.append("and there is no reference to hold them against")
    else:
        beside.append(f"{_beside(own.less_reference)} {reference}")
    return ", ".join(beside)


def _flat(own: RemovalTest, rules: Rules) -> str:
    if own.contrast.high < rules.least_contrast:
        return "no token matters more than another, so there is nothing to point at"
    return "no token matters: the best order finds next to nothing"


def _control_name(control: str | None) -> str:
    names = {
        "position": "the position of the tokens (first ones first)",
        "frequency": "the rarity of the tokens",
    }
    if control is None:
        return "a control"
    return names.get(control, "the same scores of another text")


def _beside(less: Estimate) -> str:
    """How much less is found than by something else, worded by the interval."""
    if less.low > 0:
        return f"{_points(less.low)} to {_points(less.high)} points more than"
    if less.high < 0:
        return f"{_points(-less.high)} to {_points(-less.low)} points less than"
    return f"between {_points(-less.low)} points less and {_points(less.high)} more than"


def which_way(method: str, directions: Sequence[Direction]) -> str:
    """The answer to "which way" in one sentence."""
    if not directions:
        return "Which way the tokens pull was not measured."
    first = directions[0]
    named, every = first.highlighted, first.all_tokens
    assert named.value is not None and every.value is not None
    against = 1 - named.value
    return (
        "The weights have no sign, so they cannot say which way a token pulls: of what "
        f"{method} highlights, {_percent(named.value)} ({_percent(named.low or 0.0)} to "
        f"{_percent(named.high or 0.0)}) speaks for the prediction and {_percent(against)} against "
        f"it; of all tokens, {_percent(every.value)} does ({first.removal})."
    )


def next_step(test: WeightsTest) -> str:
    """What to do with the answer."""
    if test.word == "supported":
        return (
            f"Read {test.method} as a map of where the prediction rests, not of which way a word "
            "pulls. For one text: attlas explain --licence."
        )
    if test.word == "too few texts":
        if test.needed is None:
            return "More texts would not settle it: read no map of the weights without its licence."
        return f"Audit about {test.needed} texts: attlas audit … --count {test.needed}"
    better = next((name for name in test.references.values() if name), None)
    instead = f" {better} names what matters better." if better and _is_behind(test) else ""
    return (
        f"Do not rely on a map of the weights alone.{instead} "
        "For one text: attlas explain --licence."
    )


def _is_behind(test: WeightsTest) -> bool:
    """Whether the reference is surely better under a removal."""
    less = [each.less_reference for each in test.tested.values()]
    return any(each is not None and each.high < 0 for each in less)


def notes(test: WeightsTest) -> tuple[str, ...]:
    """What else a reader of the verdict should know."""
    return tuple(_notes(test))


def _notes(test: WeightsTest) -> Iterator[str]:
    if test.used is None:
        yield "Whether the attention is used at all could not be tested on this model."
    if not any(test.references.values()):
        yield "There was no reference to hold the weights against."
    if len(test.tested) == 1:
        yield "Tokens can be removed in one way only here; that never gives *supported*."
    if test.same_word < 1:
        share = _percent(test.same_word)
        yield f"{share} of the splits into halves give this word; the others give another."


def _supported(test: WeightsTest) -> str:
    return (
        f"The attention weights show where the prediction rests: read as {test.method}, "
        f"{_reasons(test, list(test.tested))}."
    )


def _not_supported(test: WeightsTest) -> str:
    if test.is_unused:
        assert test.used is not None
        reasons = (
            f"shuffling them moves the answer by at most {test.used.high:.3f}, so they are hardly "
            "used"
        )
    else:
        reasons = f"read as {test.method}, {_reasons(test, list(test.tested))}"
    return f"The attention weights do not show where the prediction rests: {reasons}."


def _partly(test: WeightsTest) -> str:
    clauses = [
        f"{lead} when tokens are removed by {_list(removals)} ({_reasons(test, removals)})"
        for lead, finding in _LEADS.items()
        if (removals := test.removals(finding))
    ]
    return (
        "The attention weights show only in part where the prediction rests: read as "
        f"{test.method}, {'; '.join(clauses)}."
    )


_LEADS = {
    "they do": "for",
    "they do, though another method may be better,": "in part",
    "they do not": "against",
    "they are at the border": "open",
}


def _too_few(test: WeightsTest) -> str:
    unsettled = test.removals("open")
    given = f"Too few texts to tell: on {test.texts} texts, read as {test.method}, "
    if unsettled:
        return f"{given}{_reasons(test, unsettled)}."
    if test.same_word < ENOUGH_SPLITS:
        share = _percent(test.same_word)
        return f"{given}the word depends on how they are split: {share} of the splits agree."
    assert test.used is not None
    return (
        f"{given}shuffled attention moves the answer by {test.used.low:.3f} to "
        f"{test.used.high:.3f}, and {test.rules.least_use} is the least that counts as used."
    )


_SENTENCES: Mapping[str, Callable[[WeightsTest], str]] = {
    "supported": _supported,
    "not supported": _not_supported,
    "partly": _partly,
    "too few texts": _too_few,
}


def _reasons(test: WeightsTest, removals: Collection[str]) -> str:
    """The reason for each removal, or one reason if all have the same."""
    reasons = {name: why(test, name) for name in removals}
    if len(set(reasons.values())) == 1:
        return next(iter(reasons.values()))
    return "; ".join(f"by {name}, {each}" for name, each in reasons.items())


def _range(s: Estimate) -> str:
    if not (isfinite(s.low) and isfinite(s.high)):
        return "an unknown share"
    return f"{_percent(s.low)} to {_percent(s.high)}"


def _percent(value: float) -> str:
    return f"{_points(value)} %"


def _points(value: float) -> str:
    return f"{100 * value + 0.0:.0f}".replace("-", "−")


def _list(names: Collection[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} and {last}" if first else last
