"""Spans of characters, from marked words and from two versions of a text."""

import re
from collections.abc import Iterable, Mapping, Sequence
from difflib import SequenceMatcher

from attlas.data.example import Span

Range = tuple[int, int]
_PIECE = re.compile(r"<[^>]*>|\w+(?:['’-]\w+)*|[^\w\s]")


def words_of(text: str) -> list[Span]:
    """The places of the words that `text.split()` gives."""
    return [found.span() for found in re.finditer(r"\S+", text)]


def joined(tokens: Sequence[str]) -> tuple[str, list[Span]]:
    """Tokens with a space between them, and the place of each."""
    places, start = [], 0
    for token in tokens:
        places.append((start, start + len(token)))
        start += len(token) + 1
    return " ".join(tokens), places


def spans_of(places: Sequence[Span], ranges: Iterable[Sequence[int]]) -> tuple[Span, ...]:
    """The characters of half-open ranges of words; an empty range marks nothing."""
    kept = sorted({(first, last) for first, last in ranges if first < last})
    if any(first < 0 or last > len(places) for first, last in kept):
        raise ValueError(f"a range of words goes beyond the {len(places)} there are: {kept}")
    return tuple((places[first][0], places[last - 1][1]) for first, last in kept)


def runs(marks: Sequence[object]) -> list[Range]:
    """The half-open ranges in which marks stand next to each other."""
    edges = [False, *map(bool, marks), False]
    turns = [i for i in range(len(edges) - 1) if edges[i] != edges[i + 1]]
    return list(zip(turns[::2], turns[1::2], strict=True))


def marked(places: Sequence[Span], marks: Sequence[object]) -> tuple[Span, ...]:
    """The characters of the words with a mark; there is one mark for every word."""
    if len(marks) != len(places):
        raise ValueError(f"{len(marks)} marks for {len(places)} words")
    return spans_of(places, runs(marks))


def place_words(text: str, words: str | Mapping[str, object]) -> Span:
    """Where words stand; those that are there more than once come with their `start`."""
    if isinstance(words, str):
        if text.count(words) != 1:
            raise ValueError(f"{words!r} is there {text.count(words)} times: give its start")
        start, written = text.index(words), words
    else:
        start, written = int(str(words["start"])), str(words["text"])
    if not text.startswith(written, start):
        raise ValueError(f"{written!r} does not stand at {start}")
    return start, start + len(written)


def majority(maps: Sequence[Sequence[int]]) -> list[bool]:
    """Which words more than half of the maps mark."""
    return [2 * sum(map(bool, column)) > len(maps) for column in zip(*maps, strict=True)]


def changed(before: str, after: str) -> tuple[tuple[Span, ...], tuple[Span, ...]]:
    """The words that differ between two versions, in the one and in the other.

    Capitals, punctuation and tags do not count. Words only added leave no span in `before`.
    """
    old, new = list(_PIECE.finditer(before)), list(_PIECE.finditer(after))
    matcher = SequenceMatcher(None, _plain(old), _plain(new), autojunk=False)
    turns = [turn for turn in matcher.get_opcodes() if turn[0] != "equal"]
    return (
        _wordy([old[first:last] for _, first, last, _, _ in turns]),
        _wordy([new[first:last] for _, _, _, first, last in turns]),
    )


def _plain(pieces: list[re.Match[str]]) -> list[str]:
    return [piece.group().lower() for piece in pieces]


def _wordy(stretches: list[list[re.Match[str]]]) -> tuple[Span, ...]:
    words = [[each for each in pieces if each.group()[0].isalnum()] for pieces in stretches]
    return tuple((found[0].start(), found[-1].end()) for found in words if found)
