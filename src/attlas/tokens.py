"""The tokens of one input: what the model saw, and where in the text each came from."""

import re
from bisect import bisect_left, bisect_right
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, overload
from unicodedata import category

Span = tuple[int, int]

# Scripts written without spaces: each sign is a word of its own until a token joins several.
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


@dataclass(frozen=True)
class Tokens(Sequence[str]):
    """The tokens of one input, as the tokenizer writes them, each with its place in the text.

    `offsets` are half-open character spans in `sources[segment]`, None where a token stands for
    no text (a special token, an image patch). `words`, where given, are the spans of the words
    the caller split the text into; otherwise words are found in the text.
    """

    texts: tuple[str, ...]
    offsets: tuple[Span | None, ...]
    special: tuple[bool, ...]
    segments: tuple[str, ...]
    sources: Mapping[str, str] = field(default_factory=dict)
    words: Mapping[str, tuple[Span, ...]] = field(default_factory=dict)
    grid: tuple[int, int] | None = None  # rows and columns, where the tokens are image patches

    def __post_init__(self) -> None:
        lengths = {len(self.texts), len(self.offsets), len(self.special), len(self.segments)}
        if len(lengths) != 1:
            raise ValueError(
                f"a token needs a text, an offset, a mark and a segment, not {lengths}"
            )

    def __len__(self) -> int:
        return len(self.texts)

    @overload
    def __getitem__(self, index: int) -> str: ...
    @overload
    def __getitem__(self, index: slice) -> tuple[str, ...]: ...
    def __getitem__(self, index: int | slice) -> str | tuple[str, ...]:
        return self.texts[index]

    def __iter__(self) -> Iterator[str]:
        return iter(self.texts)

    def select(self, positions: Sequence[int]) -> "Tokens":
        """The tokens at these positions alone."""
        return Tokens(
            tuple(self.texts[i] for i in positions),
            tuple(self.offsets[i] for i in positions),
            tuple(self.special[i] for i in positions),
            tuple(self.segments[i] for i in positions),
            self.sources,
            self.words,
            self.grid,
        )

    def followed_by(self, others: "Tokens") -> "Tokens":
        """These tokens and then others, of segments of their own."""
        return Tokens(
            self.texts + others.texts,
            self.offsets + others.offsets,
            self.special + others.special,
            self.segments + others.segments,
            {**self.sources, **others.sources},
            {**self.words, **others.words},
            self.grid,
        )

    def to_dict(self) -> dict[str, Any]:
        """The tokens as JSON."""
        return {
            "texts": list(self.texts),
            "offsets": [list(span) if span else None for span in self.offsets],
            "special": list(self.special),
            "segments": list(self.segments),
            "sources": dict(self.sources),
            "words": {name: [list(span) for span in spans] for name, spans in self.words.items()},
            "grid": list(self.grid) if self.grid else None,
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> "Tokens":
        """Read what `to_dict` gave."""
        return cls(
            tuple(record["texts"]),
            tuple((span[0], span[1]) if span else None for span in record["offsets"]),
            tuple(record["special"]),
            tuple(record["segments"]),
            dict(record["sources"]),
            {name: tuple((a, b) for a, b in spans) for name, spans in record["words"].items()},
            (record["grid"][0], record["grid"][1]) if record["grid"] else None,
        )

    def spans(self) -> tuple[Span | None, ...]:
        """The places of the tokens without the white space around them, which some tokens hold."""
        return tuple(self._span(i) for i in range(len(self)))

    def _span(self, position: int) -> Span | None:
        span = self.offsets[position]
        if span is None:
            return None
        held = self.sources.get(self.segments[position], "")[slice(*span)]
        if not held.strip():
            return span
        return span[0] + len(held) - len(held.lstrip()), span[1] - len(held) + len(held.rstrip())

    def labels(self) -> tuple[str, ...]:
        """Each token as a reader would write it: its own text, without the tokenizer's marks."""
        return tuple(self._label(i) for i in range(len(self)))

    def _label(self, position: int) -> str:
        span = self.offsets[position]
        if span is None or self._shares(position):
            return self.texts[position]
        shown = self.sources.get(self.segments[position], "")[slice(*span)]
        return shown.strip() or shown or self.texts[position]

    def _shares(self, position: int) -> bool:
        """Whether a token is one of several pieces of the same character."""
        span, segment = self.offsets[position], self.segments[position]
        beside = [i for i in (position - 1, position + 1) if 0 <= i < len(self)]
        others = [self.offsets[i] for i in beside if self.segments[i] == segment]
        return span is not None and any(o and _overlap(span, o) for o in others)


@dataclass(frozen=True)
class Unit:
    """Some tokens that belong together: a word, or a token that is part of none."""

    text: str
    positions: tuple[int, ...]
    segment: str
    span: Span | None
    special: bool


def join_tokens(tokens: Tokens) -> list[Unit]:
    """Put the tokens of each word together, by their offsets.

    A token that reaches over several words joins them; special tokens and patches stay alone, and
    so does the end of a line; a token of spaces joins the word that follows it at once.
    """
    units: list[Unit] = []
    for segment in dict.fromkeys(tokens.segments):
        units.extend(_unit(tokens, segment, run) for run in _runs(tokens, segment))
    return sorted(units, key=lambda unit: unit.positions[0])


def word_spans(text: str) -> tuple[Span, ...]:
    """The words and the punctuation marks of a text."""
    return tuple(match.span() for match in _WORD.finditer(_with_one_mark(text)))


def _with_one_mark(text: str) -> str:
    if text.isascii():
        return text
    return "".join(_MARK if category(sign)[0] == "M" else sign for sign in text)


@dataclass
class _Run:
    """Tokens that follow each other and touch the same words; one without a span stays alone."""

    positions: list[int]
    span: Span | None = None


def _runs(tokens: Tokens, segment: str) -> list[_Run]:
    text = tokens.sources.get(segment, "")
    words = _Words(tokens.words.get(segment) or word_spans(text))
    runs: list[_Run] = []
    before: Span | None = None  # how far the words reach that have been begun
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
    """Let the last word end where its tokens do: a special token has broken it in two."""
    broken = next(run for run in reversed(runs) if run.span is not None)
    end = tokens.offsets[broken.positions[-1]]
    if broken.span is not None and end is not None:
        broken.span = (broken.span[0], end[1])


def _unit(tokens: Tokens, segment: str, run: _Run) -> Unit:
    first = run.positions[0]
    if run.span is None:
        text, span, special = tokens.texts[first], tokens.offsets[first], tokens.special[first]
        return Unit(text, (first,), segment, span, special)
    spans = [span for i in run.positions if (span := tokens.offsets[i])]
    touches = any(_overlap(span, run.span) for span in spans)
    # White space whose word never came: what followed it was a special token.
    reach = run.span if touches else (spans[0][0], spans[-1][1])
    shown = tokens.sources.get(segment, "")[slice(*reach)]
    text = shown.strip() or shown or tokens.texts[first]
    return Unit(text, tuple(run.positions), segment, reach, False)


class _Words:
    """The words of a text, to be looked up by place."""

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


def _overlap(one: Span, other: Span) -> bool:
    return one[0] < other[1] and other[0] < one[1]
