"""What views show, in words: words or tokens with their scores, layers and heads by their names."""

import math
import re
from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from attlas.views.colours import limit_of

# Control characters, marks that change the writing direction, line separators, lone surrogates.
_UNSAFE = re.compile(
    "[\x00-\x1f\x7f-\x9f\u061c\u200e\u200f\u2028-\u202e\u2066-\u2069\ufeff\ud800-\udfff]"
)
_SHOWN = {"\n": "⏎", "\r": "␍", "\t": "⇥", "\x7f": "␡", "\u2028": "⏎", "\u2029": "⏎"}


@dataclass(frozen=True)
class ShownUnit:
    """A word or a token, its score, and its span in the source text."""

    text: str
    score: float
    special: bool
    segment: str
    start: int | None
    end: int | None
    positions: tuple[int, ...] = ()


def words_or_tokens(payload: Mapping[str, Any]) -> list[ShownUnit]:
    """The words of the payload, or its tokens if it has no words."""
    return scored_units(payload, [token["score"] for token in payload["tokens"]])


def scored_units(payload: Mapping[str, Any], scores: Sequence[float]) -> list[ShownUnit]:
    """The words of the payload, or its tokens if it has none, with sums of these token scores."""
    tokens = payload["tokens"]
    units = payload.get("words") or [
        {**token, "text": token["label"], "positions": [place]}
        for place, token in enumerate(tokens)
    ]
    return [_unit(unit, tokens, scores) for unit in units]


def patches(
    payload: Mapping[str, Any], units: Sequence[ShownUnit]
) -> list[tuple[Mapping[str, Any], list[ShownUnit]]]:
    """Each picture with its patches among these units, row by row.

    They are the last tokens of its segment, one for each cell of its grid. A picture that they do
    not fill is left out.
    """
    found = []
    for picture in payload.get("pictures") or ():
        rows, columns = picture["grid"] or (0, 0)
        own = [unit for unit in units if unit.segment == picture["segment"]]
        if 0 < rows * columns <= len(own):
            found.append((picture, own[-rows * columns :]))
    return found


def units_except(units: Iterable[ShownUnit], others: Iterable[ShownUnit]) -> list[ShownUnit]:
    """The units that are not among the others."""
    left_out = {unit.positions for unit in others}
    return [unit for unit in units if unit.positions not in left_out]


def in_segments(units: Iterable[ShownUnit]) -> dict[str, list[ShownUnit]]:
    """The units of each segment, in the order of the segments."""
    rows: dict[str, list[ShownUnit]] = {}
    for unit in units:
        rows.setdefault(unit.segment, []).append(unit)
    return rows


def strongest(units: Sequence[ShownUnit], count: int) -> list[ShownUnit]:
    """The units with the largest absolute scores; special ones only if there are no others."""
    chosen = [unit for unit in units if not unit.special] or list(units)
    return sorted(chosen, key=lambda unit: -abs(unit.score))[:count]


def with_places(units: Sequence[ShownUnit]) -> list[ShownUnit]:
    """The units; those whose text occurs more than once say which one they are: "and (2nd)"."""
    counts = Counter(unit.text for unit in units if not unit.special)
    seen: Counter[str] = Counter()
    named = []
    for unit in units:
        if unit.special or counts[unit.text] < 2:
            named.append(unit)
            continue
        seen[unit.text] += 1
        named.append(replace(unit, text=f"{unit.text} ({ordinal(seen[unit.text])})"))
    return named


def token_places(tokens: Sequence[Mapping[str, Any]]) -> dict[int, str]:
    """Which one of several equal tokens each is, by position; none for special tokens."""
    found: dict[str, list[int]] = {}
    for position, token in enumerate(tokens):
        if not token["special"]:
            found.setdefault(token["label"], []).append(position)
    several = [positions for positions in found.values() if len(positions) > 1]
    return {each: ordinal(i + 1) for positions in several for i, each in enumerate(positions)}


def ordinal(number: int) -> str:
    """First, second, third: `1st`, `2nd`, `3rd`, `4th`."""
    teen = 10 < number % 100 < 14
    return f"{number}{'th' if teen else {1: 'st', 2: 'nd', 3: 'rd'}.get(number % 10, 'th')}"


def limit(units: Iterable[ShownUnit]) -> float:
    """The score that is shown in full colour."""
    return limit_of((unit.score, unit.special) for unit in units)


def gap(before: ShownUnit | None, unit: ShownUnit) -> str:
    """What separates two units: nothing if they touch in the text, otherwise a space."""
    if before is None:
        return ""
    touching = before.end is not None and before.end == unit.start
    return "" if touching and not (before.special or unit.special) else " "


def visible(text: str) -> str:
    """The text with visible signs for all that a terminal or a browser would obey."""
    if not text:
        return "∅"
    if not text.strip(" "):
        return "␣" * len(text)
    return _UNSAFE.sub(lambda match: _show(match[0]), text)


def score_text(score: float, limit: float, *, signed: bool) -> str:
    """A score with as many decimals as the limit needs for three significant figures."""
    if 0 < limit < 1e-5 or limit >= 1e6:
        return format(score, "+.2e" if signed else ".2e")
    decimals = max(0, 2 - math.floor(math.log10(limit))) if limit > 0 else 3
    return format(score, f"{'+' if signed else ''}.{min(decimals, 7)}f")


def sum_words(payload: Mapping[str, Any]) -> str:
    """How the scores add up to the target; empty if the method says nothing about it."""
    found, target = payload.get("sum"), payload["target"]
    if not found:
        return ""
    base, scores, value = found.get("base") or 0.0, found["scores"], target["value"]
    top = max(abs(each) for each in (base, scores, value))
    end = f"= {target['quantity']} {score_text(value, top, signed=False)}"
    total = f"scores {score_text(scores, top, signed=False)}"
    if rest := found.get("rest_of"):
        left = score_text(value - scores, top, signed=True)
        return f"{total} {left[0]} {left[1:]} ({visible(rest)}) {end}"
    start = f"base value {score_text(base, top, signed=False)} ({visible(found['of'])})"
    return f"{start} + {total} {end}"


def _show(sign: str) -> str:
    if sign in _SHOWN:
        return _SHOWN[sign]
    return chr(0x2400 + ord(sign)) if ord(sign) < 0x20 else f"\\u{ord(sign):04x}"


def _unit(
    given: Mapping[str, Any], tokens: Sequence[Mapping[str, Any]], scores: Sequence[float]
) -> ShownUnit:
    held = [tokens[place] for place in given["positions"]]
    held = [token for token in held if token["label"].strip()] or held  # not leading spaces
    starts = [token["start"] for token in held if token.get("start") is not None]
    ends = [token["end"] for token in held if token.get("end") is not None]
    return ShownUnit(
        text=visible(given["text"]),
        score=math.fsum(scores[place] for place in given["positions"]),
        special=bool(given["special"]),
        segment=given["segment"],
        start=min(starts, default=None),
        end=max(ends, default=None),
        positions=tuple(given["positions"]),
    )


def layer_names(sites: Iterable[str]) -> dict[str, str]:
    """By key, the name of each site: `layer 3` for `encoder.3`, or the key among several kinds."""
    keys = list(sites)
    alone = len({key.partition(".")[0] for key in keys}) == 1
    return {key: _by_number(key) if alone else key for key in keys}


def head_name(layer: str, head: int | str) -> str:
    """A head of a layer that is called by this name."""
    return f"{layer} · head {head}"


def heads_by_key(sites: Iterable[tuple[str, int]]) -> dict[str, str]:
    """The names of all heads, by keys such as `encoder.3 head 0`; a site has its key and heads."""
    known = list(sites)
    layers = layer_names(key for key, _ in known)
    return {
        f"{key} head {head}": head_name(layers[key], head)
        for key, heads in known
        for head in range(heads)
    }


def _by_number(key: str) -> str:
    _, _, number = key.partition(".")
    return f"layer {number}" if number else key  # a map over the whole model has no number
