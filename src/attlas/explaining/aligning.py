"""Which words of several explanations belong together, whatever tokenizer cut them."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher

from attlas.errors import UsageError
from attlas.results.comparison import ComparedWord
from attlas.results.support.words import Unit, word_units
from attlas.tokens import Tokens
from attlas.views.units import visible

Words = list[ComparedWord]
Column = list[Unit | None]  # the unit of each explanation; None where its text has none


@dataclass(frozen=True, eq=False)
class _Part:
    """The units of one segment of each explanation, and the text of each."""

    segment: str
    units: list[list[Unit]]
    sources: list[str]
    names: tuple[str, ...]


def aligned_words(every: Sequence[Tokens], names: tuple[str, ...]) -> Words:
    """The words, segment by segment, with their tokens in each explanation."""
    units = [[unit for unit in word_units(tokens) if not unit.special] for tokens in every]
    segments = [list(dict.fromkeys(unit.segment for unit in each)) for each in units]
    for name, each in zip(names, segments, strict=True):
        if len(each) != len(segments[0]):
            raise UsageError(
                f"{names[0]} scores {', '.join(segments[0]) or 'nothing'} and {name} "
                f"{', '.join(each) or 'nothing'}: only explanations of the same parts are compared"
            )
    words: Words = []
    for place, segment in enumerate(segments[0]):
        own = [each[place] for each in segments]
        held = [
            [unit for unit in each if unit.segment == name]
            for each, name in zip(units, own, strict=True)
        ]
        sources = [tokens.sources.get(name, "") for tokens, name in zip(every, own, strict=True)]
        words += _words_of(_Part(segment, held, sources, names))
    if not words:
        raise UsageError("the explanations have no word in common: nothing can be compared")
    return words


def _words_of(part: _Part) -> Words:
    placed = all(unit.span is not None for each in part.units for unit in each)
    if placed and len(set(part.sources)) > 1:
        return _by_text(part)
    return _by_place(part) if placed else _by_order(part)


def _by_text(part: _Part) -> Words:
    """Texts that differ: each is aligned with the words of all before it.

    Words that are equal but for their case belong together, and so do as many words that replace
    one another. A word that stands in one text alone is kept for that text.
    """
    columns: list[Column] = []
    for index, units in enumerate(part.units):
        shown = [unit for unit in units if unit.text.strip()]
        columns = _with_text(columns, index, shown)
    return [_column_word(part.segment, each) for each in columns]


def _with_text(columns: list[Column], index: int, units: Sequence[Unit]) -> list[Column]:
    """The columns with one more text, at their end."""
    keys = [next(unit.text for unit in each if unit).strip().casefold() for each in columns]
    own = [unit.text.strip().casefold() for unit in units]
    merged: list[Column] = []
    for _, start, end, first, last in SequenceMatcher(None, keys, own, False).get_opcodes():
        if end - start == last - first:
            pairs = zip(columns[start:end], units[first:last], strict=True)
            merged += [[*column, unit] for column, unit in pairs]
        else:
            merged += [[*column, None] for column in columns[start:end]]
            merged += [[*[None] * index, unit] for unit in units[first:last]]
    return merged


def _column_word(segment: str, column: Column) -> ComparedWord:
    first = next(unit for unit in column if unit)
    return ComparedWord(
        first.text,
        segment,
        first.span if column[0] else None,
        tuple(unit.positions if unit else () for unit in column),
        tuple(unit.text if unit else "" for unit in column),
        tuple(unit.span if unit else None for unit in column),
    )


def _by_place(part: _Part) -> Words:
    """Units that share a character belong together, whatever tokenizer made them."""
    groups: list[tuple[int, int, list[list[Unit]]]] = []
    for start, end, index, unit in _in_order(part):
        if not groups or start >= groups[-1][1]:
            groups.append((start, end, [[] for _ in part.units]))
        first, last, held = groups[-1]
        held[index].append(unit)
        groups[-1] = (first, max(last, end), held)
    return [word for group in groups for word in _joined(part, *group)]


def _in_order(part: _Part) -> list[tuple[int, int, int, Unit]]:
    placed = [
        (*unit.span, index, unit)
        for index, each in enumerate(part.units)
        for unit in each
        if unit.span is not None
    ]
    return sorted(placed, key=lambda each: each[:2])


def _joined(part: _Part, start: int, end: int, held: list[list[Unit]]) -> Words:
    """One word; white space that some tokenizers have as a token and others do not is left out."""
    shown = part.sources[0][start:end]
    text = shown.strip() or shown
    for name, units in zip(part.names, held, strict=True):
        if not units and not shown.strip():
            return []
        if not units:
            raise UsageError(
                f"{name} has no score for {visible(text)!r}, which another has: compare "
                "explanations of the same part of a text"
            )
    positions = tuple(tuple(p for unit in units for p in unit.positions) for units in held)
    return [ComparedWord(text, part.segment, (start, end), positions)]


def _by_order(part: _Part) -> Words:
    """The first unit with the first, the second with the second: patches, tokens without places."""
    held = [[unit for unit in each if unit.text.strip()] for each in part.units]
    for name, each in zip(part.names, held, strict=True):
        if len(each) != len(held[0]):
            raise UsageError(
                f"{part.names[0]} has {len(held[0])} patches or tokens and {name} has {len(each)}: "
                "what has no place in a text is compared in its order, and needs equally many"
            )
    columns: list[Column] = [list(units) for units in zip(*held, strict=True)]
    words = [_column_word(part.segment, each) for each in columns]
    same = len(set(part.sources)) == 1
    return [replace(word, texts=(), spans=()) for word in words] if same else words
