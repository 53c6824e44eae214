"""The tokens of one input: what the model saw, and where in the text each came from."""

import re
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any, Self, overload

Span = tuple[int, int]

# Scripts written without spaces: each sign is a word of its own until a token joins several.
_NO_SPACES = "\u0e00-\u0eff\u1000-\u109f\u1780-\u17ff\u3040-\u30ff\u3400-\u4dbf\u4e00-\u9fff\uf900-\ufaff"
_WORD = re.compile(rf"[{_NO_SPACES}]|[^\W{_NO_SPACES}]+(?:['’\-][^\W{_NO_SPACES}]+)*|[^\w\s]")


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
            raise ValueError(f"a token needs a text, an offset, a mark and a segment, not {lengths}")

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
    def from_dict(cls, record: Mapping[str, Any]) -> Self:
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

    def labels(self) -> tuple[str, ...]:
        """Each token as a reader would write it: its own text, without the tokenizer's marks."""
        return tuple(self._label(i) for i in range(len(self)))

    def _label(self, position: int) -> str:
        span = self.offsets[position]
        if span is None:
            return self.texts[position]
        shown = self.sources[self.segments[position]][slice(*span)].strip()
        shared = span in (self.offsets[position - 1 : position] + self.offsets[position + 1 :][:1])
        return self.texts[position] if shared or not shown else shown


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
    so does a token of white space, unless it touches the word that follows it.
    """
    units: list[Unit] = []
    for segment in dict.fromkeys(tokens.segments):
        units.extend(_join_segment(tokens, segment))
    return sorted(units, key=lambda unit: unit.positions[0])


def word_spans(text: str) -> tuple[Span, ...]:
    """The words and the punctuation marks of a text."""
    return tuple(match.span() for match in _WORD.finditer(text))


def _join_segment(tokens: Tokens, segment: str) -> Iterator[Unit]:
    text = tokens.sources.get(segment, "")
    words = tokens.words.get(segment) or word_spans(text)
    open_positions: list[int] = []
    open_span: Span | None = None

    def close() -> Iterator[Unit]:
        if open_span is not None:
            shown = text[slice(*open_span)].strip() or tokens.texts[open_positions[0]]
            yield Unit(shown, tuple(open_positions), segment, open_span, False)

    for position, name in enumerate(tokens.segments):
        if name != segment:
            continue
        span = tokens.offsets[position]
        if span is None or tokens.special[position]:
            yield from close()
            open_positions, open_span = [], None
            yield Unit(tokens.texts[position], (position,), segment, span, tokens.special[position])
            continue
        reach = _reach(span, words)
        if open_span is not None and reach[0] < open_span[1]:
            open_positions.append(position)
            open_span = (min(open_span[0], reach[0]), max(open_span[1], reach[1]))
        else:
            yield from close()
            open_positions, open_span = [position], reach
    yield from close()


def _reach(span: Span, words: tuple[Span, ...]) -> Span:
    """The span of the words that a token overlaps; its own where there are none."""
    touched = [word for word in words if word[0] < span[1] and span[0] < word[1]]
    if not touched:  # white space, or an empty piece: part of the word that follows at once
        touched = [word for word in words if word[0] == span[1]]
    if not touched:
        return span
    return (min(word[0] for word in touched), max(word[1] for word in touched))
