"""The verb `compare`: several explanations side by side, word by word."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from difflib import SequenceMatcher
from itertools import combinations
from typing import Any

import numpy as np

from attlas.errors import UsageError
from attlas.mathematics.rank_agreement import kendall, top_overlap
from attlas.results import Comparison, Explanation
from attlas.results.comparison import MANY, ComparedWord, PairAgreement
from attlas.results.support.words import Unit, word_units
from attlas.shapes import MethodScores
from attlas.tokens import Tokens
from attlas.verbs import refuse_unknown
from attlas.views.units import visible

TOP = 5  # words that are compared as the strongest, if there are twice as many
SHOWN = 32  # characters of a text in a name
FACTS = {"method": "methods", "target": "targets", "model": "models", "text": "texts"}

Words = list[ComparedWord]
Column = list[Unit | None]  # the unit of each explanation; None where its text has none


@refuse_unknown
def compare(
    explanations: Any,
    *,
    names: Sequence[str] | None = None,
    top: int | None = None,
) -> Comparison:
    """Put explanations side by side, word by word, and say how far every two agree.

    Args:
        explanations: Two or more, of different methods, targets, models or texts. Words are found
            by their places in the text, so that tokenizers may differ; a token that covers several
            words joins them. Texts are aligned: only words that stand in two texts, or in the place
            of one another, are compared. Special tokens are left out.
        names: What each is called; by default what tells them apart.
        top: How many of the strongest words are compared; by default five, and of fewer than ten
            words a half.

    Example:
        >>> import attlas
        >>> subject, text = attlas.load("sentiment"), "a warm and funny film"
        >>> e1 = attlas.explain(subject, text, "attention_rollout")
        >>> e2 = attlas.explain(subject, text, "gradient")
        >>> attlas.compare([e1, e2]).names
        ('attention_rollout', 'gradient')
    """
    found = _checked(explanations)
    facts = [_facts(each) for each in found]
    differing = [name for name in FACTS if len({each[name] for each in facts}) > 1]
    called = _given(names, len(found)) if names is not None else _named(facts, differing)
    words = _aligned([each.tokens for each in found], called)
    scores = np.array([[_sum(each, word, i) for word in words] for i, each in enumerate(found)])
    pairs = list(combinations(range(len(found)), 2))
    fewest = _fewest(words, pairs)
    count = min(TOP, max(1, fewest // 2)) if top is None else top
    if isinstance(count, bool) or not isinstance(count, int) or not 1 <= count <= fewest:
        raise UsageError(f"top is a number of words, 1 to {fewest} here, not {count!r}")
    return Comparison(
        tuple(
            replace(each, maps=None, pictures={} if place else each.pictures)
            for place, each in enumerate(found)
        ),
        called,
        tuple(words),
        scores,
        tuple(_agreement(found, scores, pair, count) for pair in pairs),
        count,
        FACTS[differing[0]] if len(differing) == 1 else MANY,
        tuple(dict.fromkeys(note for each in found for note in each.notes)),
    )


def _checked(explanations: Any) -> list[Explanation]:
    if isinstance(explanations, Explanation) or not isinstance(explanations, Sequence):
        raise UsageError("compare takes a list of explanations: attlas.compare([e1, e2])")
    for each in explanations:
        if not isinstance(each, Explanation):
            raise UsageError(f"compare takes explanations, not {type(each).__name__}")
    if len(explanations) < 2:
        raise UsageError(f"compare takes two explanations or more, not {len(explanations)}")
    return list(explanations)


def _facts(explanation: Explanation) -> dict[str, str]:
    """What may tell an explanation from another."""
    target, origin = explanation.target, explanation.origin
    contrast = f" rather than {target.contrast}" if target.contrast else ""
    place = "" if target.position is None else f" at {target.position}"
    options = ", ".join(f"{name}={value}" for name, value in origin.options.items())
    text = " | ".join(explanation.tokens.sources.values())
    return {
        "method": f"{origin.method}{f'({options})' if options else ''}{origin.part}",
        "target": f"{target.name.strip() or target.name}{contrast}{place}",
        "model": origin.model,
        "text": text,
        "name": origin.method,
    }


def _named(facts: Sequence[dict[str, str]], differing: Sequence[str]) -> tuple[str, ...]:
    """A name for each: what tells it apart, and a number where nothing does."""
    shown = list(facts)
    if len({each["name"] for each in facts}) == len({each["method"] for each in facts}):
        shown = [each | {"method": each["name"]} for each in facts]  # options say nothing more
    texts = _shortened([each["text"] for each in facts])
    shown = [each | {"text": text} for each, text in zip(shown, texts, strict=True)]
    names = [" · ".join(each[name] for name in differing) for each in shown]
    seen = [names[: place + 1].count(name) for place, name in enumerate(names)]
    return tuple(
        f"{name} ({number})".strip() if names.count(name) > 1 else name
        for name, number in zip(names, seen, strict=True)
    )


def _shortened(texts: Sequence[str]) -> list[str]:
    """Texts as names: long ones are cut, and a long beginning that all have is left out."""
    if max(len(text) for text in texts) <= SHOWN:
        return list(texts)
    same = next((i for i, signs in enumerate(zip(*texts, strict=False)) if len(set(signs)) > 1), 0)
    start = texts[0].rfind(" ", 0, same) + 1 if same >= SHOWN // 2 else 0
    ends = [f"…{text[start:]}" if start else text for text in texts]
    return [end if len(end) <= SHOWN else f"{end[: SHOWN - 1]}…" for end in ends]


def _given(names: Sequence[str], count: int) -> tuple[str, ...]:
    called = (names,) if isinstance(names, str) else tuple(str(name) for name in names)
    if len(called) != count or len(set(called)) != count:
        raise UsageError(f"names must be {count} different names, one for each, not {called}")
    return called


def _fewest(words: Sequence[ComparedWord], pairs: Sequence[tuple[int, int]]) -> int:
    """How many words every two have at least, of those that have any in common."""
    shared = [sum(all(word.positions[i] for i in pair) for word in words) for pair in pairs]
    if not any(shared):
        raise UsageError("the explanations have no word in common: nothing can be compared")
    return min(filter(None, shared))


def _sum(explanation: Explanation, word: ComparedWord, index: int) -> float:
    """The score of a word, and no number where its text does not have it."""
    if not word.positions[index]:
        return float("nan")
    return float(explanation.scores[list(word.positions[index])].sum(dtype=np.float64))


def _agreement(
    found: Sequence[Explanation], scores: MethodScores, pair: tuple[int, int], count: int
) -> PairAgreement:
    signed = {found[index].origin.shows_sides for index in pair}
    rows = scores[list(pair)]
    rows = rows[:, np.isfinite(rows).all(axis=0)]
    words, strengths = rows.shape[1], np.abs(rows)
    by = "strength" if len(signed) > 1 else "score"
    if not words:
        return PairAgreement(*pair, None, 0.0, 0.0, by, 0)
    tau = kendall(*(strengths if by == "strength" else rows))
    return PairAgreement(
        *pair,
        None if np.isnan(tau) else tau,
        top_overlap(strengths[0], strengths[1], count),
        count / words,
        by,
        words,
    )


@dataclass(frozen=True, eq=False)
class _Part:
    """The units of one segment of each explanation, and the text of each."""

    segment: str
    units: list[list[Unit]]
    sources: list[str]
    names: tuple[str, ...]


def _aligned(every: Sequence[Tokens], names: tuple[str, ...]) -> Words:
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
    every = ((index, unit) for index, units in enumerate(part.units) for unit in units)
    placed = [(*unit.span, index, unit) for index, unit in every if unit.span is not None]
    groups: list[tuple[int, int, list[list[Unit]]]] = []
    for start, end, index, unit in sorted(placed, key=lambda each: each[:2]):
        if not groups or start >= groups[-1][1]:
            groups.append((start, end, [[] for _ in part.units]))
        first, last, held = groups[-1]
        held[index].append(unit)
        groups[-1] = (first, max(last, end), held)
    return [word for group in groups for word in _joined(part, *group)]


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
