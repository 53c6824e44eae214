"""Counterfactual flip: whether changing the highest words as editors did turns the model."""

import re
from collections.abc import Collection
from dataclasses import dataclass
from difflib import SequenceMatcher
from typing import Any

import numpy as np

from attlas.data.spans import words_of
from attlas.errors import UsageError
from attlas.measures.support.measure import Case, Occasion, measure
from attlas.models.asking.ask import predict_each
from attlas.results import Explanation
from attlas.shapes import TokenVector
from attlas.tokens import overlap

SEGMENTS = ("text_a", "text_b")
_WORD = re.compile(r"\s*\S+")  # a word with the white space before it


@measure(
    better="higher",
    kind="faithfulness",
    needs=("edits",),
    by_rank=False,
    reading="Whether the editors' changes at the highest words alone turn the model, as all their "
    "changes do.",
    paper="Kaushik et al. 2020, arXiv:1909.12434",
)
def counterfactual_flip(occasion: Occasion) -> float:
    """1 if the changes at the highest words turn the model as all changes do, otherwise 0.

    As many of the highest words are taken as editors changed or put in. NaN if all changes
    together do not turn the model.
    """
    whole, revised = _versions(occasion)
    place = _first_difference(whole, revised)
    changes = exchanges(whole[place], revised[place])
    tops = _top_words(occasion, whole, place, changes)
    chosen = [each for each in changes if each.touches(tops)]
    partly = (*whole[:place], exchanged(whole[place], chosen), *whole[place + 1 :])
    texts = [_text(segments) for segments in (whole, revised, partly)]
    before, after, answer = (label for label, _ in predict_each(occasion.subject, texts))
    return np.nan if before == after else float(answer == after)


@dataclass(frozen=True)
class Exchange:
    """Words of one version, as a half-open range, and what stands in their place in the other."""

    first: int
    last: int
    instead: str

    def touches(self, words: Collection[int]) -> bool:
        """Whether one of these words is exchanged, or is next to words that are only added."""
        beside = range(self.first - 1, self.last + 1)
        return any(word in words for word in range(self.first, self.last) or beside)


def exchanges(before: str, after: str) -> list[Exchange]:
    """The exchanges that make one version the other; case and punctuation of words are ignored."""
    old, new = _WORD.findall(before), _WORD.findall(after)
    matcher = SequenceMatcher(None, [*map(_plain, old)], [*map(_plain, new)], autojunk=False)
    return [
        Exchange(first, last, "".join(new[start:stop]))
        for name, first, last, start, stop in matcher.get_opcodes()
        if name != "equal"
    ]


def exchanged(before: str, chosen: Collection[Exchange]) -> str:
    """The text with these exchanges made."""
    words, at, made = _WORD.findall(before), 0, []
    for exchange in sorted(chosen, key=lambda each: each.first):
        made += [*words[at : exchange.first], exchange.instead]
        at = exchange.last
    return "".join([*made, *words[at:]])


def _plain(word: str) -> str:
    return re.sub(r"\W", "", word).lower() or word.strip()


def _versions(occasion: Occasion) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The segments of the text, and of the text as editors changed it."""
    revised = occasion.example and occasion.example.fields.get("revised_text")
    if not revised:
        raise UsageError("this measure needs the text as editors changed it: `revised_text`")
    whole, other = _segments(occasion.text), _segments(revised)
    if len(whole) != len(other):
        raise UsageError("the two versions of a text must be both one text, or both a pair")
    return whole, other


def _segments(text: Any) -> tuple[str, ...]:
    if isinstance(text, str):
        return (text,)
    if isinstance(text, tuple) and len(text) == 2:
        return text
    raise UsageError(f"editors change a text or a pair of texts, not {type(text).__name__}")


def _text(segments: tuple[str, ...]) -> str | tuple[str, ...]:
    return segments[0] if len(segments) == 1 else segments


def _first_difference(whole: tuple[str, ...], revised: tuple[str, ...]) -> int:
    """The place of the first segment that differs."""
    pairs = zip(whole, revised, strict=True)
    return next((i for i, (one, other) in enumerate(pairs) if one != other), 0)


def _top_words(
    occasion: Occasion, whole: tuple[str, ...], place: int, changes: list[Exchange]
) -> set[int]:
    """The highest words of the changed segment, as many as editors changed or put in."""
    segment = "text" if len(whole) == 1 else SEGMENTS[place]
    count = sum(max(each.last - each.first, 1) for each in changes)
    scores = _word_scores(occasion.explanation, segment, whole[place])
    return set(Case(scores, occasion.seed).order()[:count].tolist())


def _word_scores(explanation: Explanation, segment: str, text: str) -> TokenVector:
    """The sum of the scores of each word's tokens."""
    tokens = explanation.tokens
    scored = zip(tokens.spans(), tokens.segments, explanation.scores, strict=True)
    placed = [(place, score) for place, name, score in scored if place and name == segment]
    sums = [
        sum(score for place, score in placed if overlap(place, word)) for word in words_of(text)
    ]
    return np.array(sums, dtype=np.float64)
