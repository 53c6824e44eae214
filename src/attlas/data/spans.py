"""Spans of characters, computed from marked words or from two versions of a text."""

import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher

from attlas.data.example import Span

Range = tuple[int, int]
_PIECE = re.compile(r"<[^>]*>|\w+(?:['’-]\w+)*|[^\w\s]")


def words_of(text: str) -> list[Span]:
    """Locate the words of `text.split()`."""
    return [word.span() for word in re.finditer(r"\S+", text)]


def joined(tokens: Sequence[str]) -> tuple[str, list[Span]]:
    """Join tokens with spaces, and locate each of them."""
    places, start = [], 0
    for token in tokens:
        places.append((start, start + len(token)))
        start += len(token) + 1
    return " ".join(tokens), places


def spans_of(places: Sequence[Span], ranges: Iterable[Sequence[int]]) -> tuple[Span, ...]:
    """Turn half-open ranges of words into spans of characters; an empty range marks nothing."""
    kept = sorted({(first, last) for first, last in ranges if first < last})
    if any(first < 0 or last > len(places) for first, last in kept):
        raise ValueError(f"a range goes beyond the {len(places)} words: {kept}")
    return tuple((places[first][0], places[last - 1][1]) for first, last in kept)


def runs(marks: Sequence[object]) -> list[Range]:
    """Find the half-open ranges of neighbouring marks."""
    edges = [False, *map(bool, marks), False]
    turns = [i for i in range(len(edges) - 1) if edges[i] != edges[i + 1]]
    return list(zip(turns[::2], turns[1::2], strict=True))


def marked(places: Sequence[Span], marks: Sequence[object]) -> tuple[Span, ...]:
    """Turn marks, one for each word, into spans of characters; neighbours become one span."""
    if len(marks) != len(places):
        raise ValueError(f"{len(marks)} marks for {len(places)} words")
    return spans_of(places, runs(marks))


def place_words(text: str, words: str | Mapping[str, object]) -> Span:
    """Locate words in a text; words that occur more than once need their `start`."""
    if isinstance(words, str):
        if text.count(words) != 1:
            raise ValueError(f"{words!r} occurs {text.count(words)} times: give its start")
        start, written = text.index(words), words
    else:
        start, written = int(str(words["start"])), str(words["text"])
    if not text.startswith(written, start):
        raise ValueError(f"{written!r} is not at {start}")
    return start, start + len(written)


def majority(maps: Sequence[Sequence[int]]) -> list[bool]:
    """Mark the words that more than half of the maps mark."""
    return [2 * sum(map(bool, column)) > len(maps) for column in zip(*maps, strict=True)]


def changed(before: str, after: str) -> tuple[tuple[Span, ...], tuple[Span, ...]]:
    """Find the words that differ between two versions: their spans in the first and in the second.

    Capitals, punctuation and tags are ignored. Words that were only added have no span in `before`.
    """
    old, new = list(_PIECE.finditer(before)), list(_PIECE.finditer(after))
    matcher = SequenceMatcher(None, _lowered(old), _lowered(new), autojunk=False)
    edits = [edit for edit in matcher.get_opcodes() if edit[0] != "equal"]
    return (
        _word_spans([old[first:last] for _, first, last, _, _ in edits]),
        _word_spans([new[first:last] for _, _, _, first, last in edits]),
    )


def _lowered(pieces: list[re.Match[str]]) -> list[str]:
    return [piece.group().lower() for piece in pieces]


def _word_spans(stretches: list[list[re.Match[str]]]) -> tuple[Span, ...]:
    words = [[each for each in pieces if each.group()[0].isalnum()] for pieces in stretches]
    return tuple((each[0].start(), each[-1].end()) for each in words if each)
