"""The tokens of one input: what the model saw, and where in the text each came from."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from typing import Any, overload

Span = tuple[int, int]
Grid = tuple[int, int]  # rows and columns
_SPACES = str.maketrans("ĠĊ", " \n")  # how byte-level tokenizers spell them
PICTURE = "image"  # the segment of the patches of a single picture


@dataclass(frozen=True)
class Tokens(Sequence[str]):
    """The tokens of one input, as the tokenizer writes them, each with its place in the text.

    `offsets` are half-open character spans in `sources[segment]`, None where a token stands for
    no text (a special token, an image patch). `words`, where given, are the spans of the words
    the caller split the text into; otherwise words are found in the text. The last tokens of a
    segment with a grid are its cells, row by row.
    """

    texts: tuple[str, ...]
    offsets: tuple[Span | None, ...]
    special: tuple[bool, ...]
    segments: tuple[str, ...]
    sources: Mapping[str, str] = field(default_factory=dict)
    words: Mapping[str, tuple[Span, ...]] = field(default_factory=dict)
    grids: Mapping[str, Grid] = field(default_factory=dict)  # of segments that lie on a picture

    def __post_init__(self) -> None:
        lengths = {len(self.texts), len(self.offsets), len(self.special), len(self.segments)}
        if len(lengths) != 1:
            raise ValueError(
                f"a token needs a text, an offset, a mark and a segment, not {lengths}"
            )

    @classmethod
    def found_later(
        cls,
        special: tuple[bool, ...],
        segment: str,
        spell: Callable[[], tuple[str, ...]],
        place: Callable[[], tuple[str, tuple[Span | None, ...]]],
    ) -> "Tokens":
        """Tokens of one segment that are spelled, and placed, when somebody looks at that."""
        tokens = cls((), (), (), ())
        own = tokens.__dict__
        del own["texts"], own["offsets"], own["sources"]
        own.update(special=special, segments=(segment,) * len(special))
        own.update(_spell=spell, _place=(segment, place))
        return tokens

    def __getattr__(self, name: str) -> Any:
        own = self.__dict__
        if name == "texts" and "_spell" in own:
            own["texts"] = own["_spell"]()
        elif name in ("offsets", "sources") and "_place" in own:
            segment, place = own["_place"]
            source, own["offsets"] = place()
            own["sources"] = {segment: source}
        else:
            raise AttributeError(name)
        return own[name]

    def __getstate__(self) -> dict[str, Any]:
        return {each.name: getattr(self, each.name) for each in fields(self)}

    def __len__(self) -> int:
        return len(self.special)

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
            self.grids,
        )

    def first(self, count: int) -> "Tokens":
        """So many tokens from the start."""
        return Tokens(
            self.texts[:count],
            self.offsets[:count],
            self.special[:count],
            self.segments[:count],
            self.sources,
            self.words,
            self.grids,
        )

    def without(self, position: int) -> "Tokens":
        """All tokens but the one at this position."""
        after = position + 1
        return replace(
            self,
            texts=self.texts[:position] + self.texts[after:],
            offsets=self.offsets[:position] + self.offsets[after:],
            special=self.special[:position] + self.special[after:],
            segments=self.segments[:position] + self.segments[after:],
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
            {**self.grids, **others.grids},
        )

    def to_dict(self) -> dict[str, Any]:
        """The tokens as JSON."""
        others = {name: list(grid) for name, grid in self.grids.items() if name != PICTURE}
        return {
            "texts": list(self.texts),
            "offsets": [list(span) if span else None for span in self.offsets],
            "special": list(self.special),
            "segments": list(self.segments),
            "sources": dict(self.sources),
            "words": {name: [list(span) for span in spans] for name, spans in self.words.items()},
            "grid": list(self.grids[PICTURE]) if PICTURE in self.grids else None,
            **({"grids": others} if others else {}),
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> "Tokens":
        """Read what `to_dict` gave."""
        grids = {PICTURE: record["grid"]} if record["grid"] else {}
        grids |= record.get("grids", {})
        if not all(isinstance(each, str) for each in (*record["texts"], *record["segments"])):
            raise TypeError("the texts of tokens and their segments are strings")
        return cls(
            tuple(record["texts"]),
            tuple((span[0], span[1]) if span else None for span in record["offsets"]),
            tuple(record["special"]),
            tuple(record["segments"]),
            dict(record["sources"]),
            {name: tuple((a, b) for a, b in spans) for name, spans in record["words"].items()},
            {name: (rows, columns) for name, (rows, columns) in grids.items()},
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
        return tuple(self.label(i) for i in range(len(self)))

    def label(self, position: int) -> str:
        """A token as a reader would write it."""
        span = self.offsets[position]
        if span is None and self.special[position]:
            return self.texts[position].translate(_SPACES)
        if span is None or self._shares(position):
            return self.texts[position]
        shown = self.sources.get(self.segments[position], "")[slice(*span)]
        return shown.strip() or shown or self.texts[position]

    def _shares(self, position: int) -> bool:
        """Whether a token is one of several pieces of the same character."""
        span, segment = self.offsets[position], self.segments[position]
        beside = [i for i in (position - 1, position + 1) if 0 <= i < len(self)]
        others = [self.offsets[i] for i in beside if self.segments[i] == segment]
        return span is not None and any(o and overlap(span, o) for o in others)


def overlap(one: Span, other: Span) -> bool:
    """Whether two spans have a character in common."""
    return one[0] < other[1] and other[0] < one[1]


def marks_of(places: Iterable[Span | None], spans: Sequence[Span]) -> list[float]:
    """A one for each place that has a character in common with one of the spans, else a zero."""
    return [float(any(overlap(place or (0, 0), span) for span in spans)) for place in places]
