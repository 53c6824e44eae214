"""The sentences of a verdict, each worded by the interval that stands beside it."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from math import isfinite

from attlas.auditing.verdict.rules import (
    ENOUGH_SPLITS,
    RemovalTest,
    Rules,
    WeightsTest,
    is_unused,
)
from attlas.mathematics.intervals import Estimate
from attlas.results.support.verdict import Direction

SCALE = "(0 %: no more than chance; 100 %: as much as can be found)"
REMOVED = {  # what was done to the tokens
    "delete": "deleted",
    "mask": "masked",
    "pad": "replaced by padding",
    "zero_embedding": "replaced by zeros",
}


def sentence(test: WeightsTest) -> str:
    """The answer to "where" in one sentence."""
    return _SENTENCES[test.word](test)


def why(test: WeightsTest, removal: str) -> str:
    """Why a removal speaks for the weights, against them, or leaves the question open."""
    own, rules = test.tested[removal], test.rules
    if own.is_flat(rules):
        return _flat(own, rules)
    if own.is_empty(rules):
        return f"no token matters on these texts, and {rules.least_texts} are needed to say so"
    if test.texts < rules.least_effective:
        return f"{test.texts} texts are fewer than the {rules.least_effective:.0f} that are needed"
    if own.effective < rules.least_effective:
        return (
            f"only about {own.effective:.0f} of the texts have anything to find in them, and "
            f"{rules.least_effective:.0f} are needed"
        )
    if own.s.high < rules.floor:
        most, asked = _percent(own.s.high), _percent(rules.floor)
        return f"they find at most {most} of what matters, and {asked} is asked"
    reached = f"they find {_range(own.s)} of what matters"
    control = control_name(test.controls[removal])
    if own.beats_control(rules) is False:
        return f"{reached}, surely no more than {control}"
    return ", ".join([reached, *_doubts(own, rules, control), _beside(test, removal)])


def _flat(own: RemovalTest, rules: Rules) -> str:
    if own.contrast.high < rules.least_contrast:
        return "no token matters more than another, so there is nothing to point at"
    return "no token matters: the answer hardly moves, whichever of them go"


def _doubts(own: RemovalTest, rules: Rules, control: str) -> Iterator[str]:
    """What keeps the figure itself from being enough."""
    if own.s.low <= rules.floor:
        yield f"which may be less than the {_percent(rules.floor)} asked for"
    if own.beats_control(rules) is None:
        yield f"perhaps no more than {control}"


def control_name(control: str | None) -> str:
    """What needs no model to find it, in words."""
    names = {
        "position": "taking the first tokens first",
        "frequency": "taking the rarest tokens first",
    }
    return names.get(control or "", "the weights of another text")


def _beside(test: WeightsTest, removal: str) -> str:
    """How much more the reference finds, worded by the interval."""
    reference, less = test.references[removal], test.tested[removal].less_reference
    if less is None:
        return "and there is no other method to hold them against"
    named = f"and another method, {reference}, finds"
    if less.low > 0:
        return f"{named} {_points(less.low)} to {_points(less.high)} points less"
    if less.high < 0:
        return f"{named} {_points(-less.high)} to {_points(-less.low)} points more"
    return f"{named} between {_points(less.high)} points less and {_points(-less.low)} more"


def which_way(method: str, directions: Sequence[Direction]) -> str:
    """The answer to "which way" in one sentence."""
    if not directions:
        return "Which way the tokens pull was not measured."
    first = directions[0]
    named, every = first.highlighted, first.all_tokens
    assert named.value is not None and every.value is not None
    return (
        "The weights have no sign, so they cannot say whether a token speaks for the prediction or "
        f"against it: of what {method} highlights, {_percent(named.value)} "
        f"({_percent(named.low or 0.0)} to {_percent(named.high or 0.0)}) speaks for it and "
        f"{_percent(1 - named.value)} against it; of all tokens, {_percent(every.value)} for it."
    )


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
    if is_unused(test.used, test.rules):
        assert test.used is not None
        reasons = (
            f"shuffling them moves the answer by at most {_percent(test.used.high, 1)}, so they "
            "are hardly used"
        )
    else:
        reasons = f"read as {test.method}, {_reasons(test, list(test.tested))}"
    return f"The attention weights do not show where the prediction rests: {reasons}."


def _partly(test: WeightsTest) -> str:
    if test.depends_on_reading():
        return (
            f"The attention weights show where the prediction rests only as {test.method} reads "
            f"them: {_reasons(test, list(test.tested))}; taken as they are (raw_attention), they "
            f"find less than {_percent(test.rules.floor)} of it."
        )
    leads = {each: lead for lead, finding in _LEADS.items() for each in test.removals(finding)}
    clauses = "; ".join(
        f"{lead}: {_reasons(test, [name for name, own in leads.items() if own == lead])}"
        for lead in dict.fromkeys(leads.values())
    )
    return (
        "The attention weights show only in part where the prediction rests: read as "
        f"{test.method}, {clauses}."
    )


_LEADS = {
    "they do": "for",
    "they do, but another method may do better": "in part",
    "they do not": "against",
    "it stays open": "open",
}


def _too_few(test: WeightsTest) -> str:
    unsettled = test.removals("open")
    between = "partly from not supported" if test.is_ruled_out() else "yet"
    given = f"Too few texts to tell {between}: on {test.texts} texts, read as {test.method}, "
    if unsettled:
        return f"{given}{_reasons(test, unsettled)}."
    if test.same_word < ENOUGH_SPLITS:
        share = _percent(test.same_word)
        return (
            f"{given}the word depends on which texts the method was chosen on: {share} of the "
            "splits agree."
        )
    if test.waits_for_plain_weights():
        return _too_few_for_plain_weights(test)
    assert test.used is not None
    return (
        f"{given}shuffled attention moves the answer by {_percent(test.used.low, 1)} to "
        f"{_percent(test.used.high, 1)}, and {_percent(test.rules.least_use)} is the least that "
        "counts as used."
    )


def _too_few_for_plain_weights(test: WeightsTest) -> str:
    found = [
        f"{_range(each.plain)} of it when tokens are {REMOVED.get(name, f'removed by {name}')}"
        for name, each in test.tested.items()
        if each.plain is not None
    ]
    return (
        f"Too few texts to tell supported from partly: on {test.texts} texts, the attention "
        f"weights show where the prediction rests as {test.method} reads them; taken as they are "
        f"(raw_attention), they find {' and '.join(found)}, and {_percent(test.rules.floor)} is "
        "asked."
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
    by_reason: dict[str, list[str]] = {}
    for name, each in reasons.items():
        by_reason.setdefault(each, []).append(REMOVED.get(name, f"removed by {name}"))
    said = "; ".join(f"when tokens are {_list(names)}, {each}" for each, names in by_reason.items())
    return said.replace("of what matters", f"of what matters {SCALE}", 1)


def _range(s: Estimate) -> str:
    if not (isfinite(s.low) and isfinite(s.high)):
        return "an unknown share"
    return f"{_percent(s.low)} to {_percent(s.high)}"


def _percent(value: float, decimals: int = 0) -> str:
    return f"{100 * value + 0.0:.{decimals}f} %".replace("-", "−")


def _points(value: float) -> str:
    return f"{100 * value + 0.0:.0f}".replace("-", "−")


def _list(names: Collection[str]) -> str:
    *first, last = names
    return f"{', '.join(first)} or {last}" if first else last
