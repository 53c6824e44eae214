"""Words and sentences: which tokens belong to each, by their offsets in the text."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import Any
from unicodedata import category

from attlas.tokens import Span, Tokens, overlap

# Scripts written without spaces: each character is a word until one token covers several.
_NO_SPACES = (
    "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff"
    "\uf900-\ufaff\uff66-\uff9f\U00020000-\U0003ffff"
)
_MARK = "\u0300"  # stands for every combining mark, which `re` cannot name
_LETTERS = rf"(?:[^\W{_NO_SPACES}]{_MARK}*)+"
_INSIDE = "['’\\-\u2010\u2011\u200c\u200d\u00ad]"  # apostrophes, hyphens, joiners
_FLAG = "[\U0001f1e6-\U0001f1ff]{2}"
_SYMBOL = rf"[^\w\s][{_MARK}\U0001f3fb-\U0001f3ff]*"  # with marks and the tones of emoji
_WORD = re.compile(
    rf"[{_NO_SPACES}]{_MARK}*"
    rf"|{_LETTERS}(?:{_INSIDE}{_LETTERS})*"
    rf"|{_FLAG}"
    rf"|{_SYMBOL}(?:\u200d{_SYMBOL})*"
)
_CLOSING = "[\"'”’»)\\]]*"
# Line ends belong to the sentence before them. Other spaces belong to no sentence, since the token
# of the next word may include them.
_SENTENCE = re.compile(
    rf"\S[^\n]*?(?:[.!?…]+{_CLOSING}(?=\s|\Z)|[。！？]+{_CLOSING}|(?=\n)|\Z)(?:[^\S\n]*\n)*"
)


@dataclass(frozen=True)
class Unit:
    """Tokens that belong together: a token, a word or a sentence."""

    text: str
    positions: tuple[int, ...]
    segment: str
    span: Span | None
    special: bool

    def to_dict(self) -> dict[str, Any]:
        """The unit as JSON, for views."""
        return {
            "text": self.text,
            "special": self.special,
            "segment": self.segment,
            "positions": list(self.positions),
        }


def token_units(tokens: Tokens) -> list[Unit]:
    """Every token as a unit of its own."""
    rows = zip(tokens, tokens.segments, tokens.offsets, tokens.special, strict=True)
    return [
        Unit(text, (place,), segment, span, special)
        for place, (text, segment, span, special) in enumerate(rows)
    ]


def word_units(tokens: Tokens) -> list[Unit]:
    """Group the tokens by word, using their offsets.

    A token that covers several words joins them. Special tokens, patches and line ends stay alone.
    A token of spaces joins the word that directly follows.
    """
    units: list[Unit] = []
    for segment in dict.fromkeys(tokens.segments):
        units.extend(_unit(tokens, segment, run) for run in _runs(tokens, segment))
    return sorted(units, key=lambda unit: unit.positions[0])


def segment_units(tokens: Tokens) -> list[Unit]:
    """Group the tokens by segment: the messages of a conversation, the two texts of a pair."""
    places: dict[str, list[int]] = {}
    for position, segment in enumerate(tokens.segments):
        places.setdefault(segment, []).append(position)
    return [Unit(name, tuple(each), name, None, False) for name, each in places.items()]


def sentence_units(tokens: Tokens) -> list[Unit]:
    """Group the tokens by sentence; special tokens and patches stay alone."""
    spans = {segment: sentence_spans(text) for segment, text in tokens.sources.items()}
    return word_units(replace(tokens, words=spans))


def word_spans(text: str) -> tuple[Span, ...]:
    """The words and the punctuation marks of a text."""
    return tuple(match.span() for match in _WORD.finditer(_with_one_mark(text)))


def sentence_spans(text: str) -> tuple[Span, ...]:
    """The sentences of a text: up to `.`, `!` or `?` before a space, or to the end of a line.

    It knows no abbreviations: "Mr. Smith" is two.
    """
    return tuple(match.span() for match in _SENTENCE.finditer(text))


def _with_one_mark(text: str) -> str:
    if text.isascii():
        return text
    return "".join(_MARK if category(sign)[0] == "M" else sign for sign in text)


@dataclass
class _Run:
    """Consecutive tokens that touch the same words; a token without a span stays alone."""

    positions: list[int]
    span: Span | None = None


def _runs(tokens: Tokens, segment: str) -> list[_Run]:
    text = tokens.sources.get(segment, "")
    words = _Words(tokens.words.get(segment) or word_spans(text))
    runs: list[_Run] = []
    before: Span | None = None  # the span of the words that the tokens so far have touched
    for position in (i for i, name in enumerate(tokens.segments) if name == segment):
        span = tokens.offsets[position]
        if span is None or tokens.special[position]:
            runs.append(_Run([position]))
            continue
        reach = span if _ends_a_line(text[slice(*span)]) else words.reach(span)
        if before is None or reach[0] >= before[1]:
            runs.append(_Run([position], reach))
        elif (last := runs[-1]).span is not None:
            reach = (min(before[0], reach[0]), max(before[1], reach[1]))
            last.positions.append(position)
            last.span = reach
        else:
            _end_early(tokens, runs)
            reach = (span[0], max(span[1], reach[1]))
            runs.append(_Run([position], reach))
        before = reach
    return runs


def _ends_a_line(held: str) -> bool:
    return "\n" in held and held.isspace()


def _end_early(tokens: Tokens, runs: Sequence[_Run]) -> None:
    """Let the last word end where its tokens end, since a special token split it."""
    broken = next(run for run in reversed(runs) if run.span is not None)
    end = tokens.offsets[broken.positions[-1]]
    if broken.span is not None and end is not None:
        broken.span = (broken.span[0], end[1])


def _unit(tokens: Tokens, segment: str, run: _Run) -> Unit:
    first = run.positions[0]
    if run.span is None:
        span, special = tokens.offsets[first], tokens.special[first]
        text = tokens.label(first) if special else tokens.texts[first]
        return Unit(text, (first,), segment, span, special)
    spans = [span for i in run.positions if (span := tokens.offsets[i])]
    touches = any(overlap(span, run.span) for span in spans)
    # White space that is followed by a special token instead of its word.
    reach = run.span if touches else (spans[0][0], spans[-1][1])
    shown = tokens.sources.get(segment, "")[slice(*reach)]
    text = shown.strip() or shown or tokens.texts[first]
    return Unit(text, tuple(run.positions), segment, reach, False)


class _Words:
    """The words of a text, searchable by position."""

    def __init__(self, spans: Sequence[Span]) -> None:
        self.starts = [start for start, _ in spans]
        self.ends = [end for _, end in spans]

    def reach(self, span: Span) -> Span:
        """The span of the words that a token overlaps; its own where there are none.

        Spaces and empty pieces are part of the word that follows at once.
        """
        first, stop = bisect_right(self.ends, span[0]), bisect_left(self.starts, span[1])
        if first < stop:
            return self.starts[first], self.ends[stop - 1]
        if stop < len(self.starts) and self.starts[stop] == span[1]:
            return self.starts[stop], self.ends[stop]
        return span


def token_rows(tokens: Tokens) -> list[dict[str, Any]]:
    """The tokens as JSON, one row each."""
    rows = zip(
        tokens, tokens.labels(), tokens.special, tokens.segments, tokens.spans(), strict=True
    )
    return [
        {
            "text": text,
            "label": label,
            "special": special,
            "segment": segment,
            "start": span[0] if span else None,
            "end": span[1] if span else None,
        }
        for text, label, special, segment, span in rows
    ]
