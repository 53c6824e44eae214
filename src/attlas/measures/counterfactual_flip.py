"""Counterfactual flip: whether changing the highest words as editors did turns the model."""

from typing import Any

import numpy as np

from attlas.data.spans import words_of
from attlas.errors import UsageError
from attlas.measures.support.exchanges import Exchange, exchanged, exchanges
from attlas.measures.support.measure import Case, Occasion, measure
from attlas.models.asking.ask import predict_each
from attlas.results import Explanation
from attlas.shapes import TokenVector
from attlas.tokens import overlap

SEGMENTS = ("text_a", "text_b")


@measure(
    better="higher",
    kind="faithfulness",
    needs=("edits",),
    by_rank=False,
    reading="Whether the model turns, as it does by the editors' change, when only the changes at "
    "the highest words are made.",
    paper="Kaushik et al. 2020, arXiv:1909.12434",
)
def counterfactual_flip(occasion: Occasion) -> float:
    """One where the changes that the highest words touch turn the model as all of them do.

    As many words are taken from the top as editors changed, or put in. NaN where all the changes
    together do not turn the model.
    """
    whole, revised = _versions(occasion)
    part = _changed_part(whole, revised)
    changes = exchanges(whole[part], revised[part])
    tops = _top_words(occasion, whole, part, changes)
    chosen = [each for each in changes if each.touches(tops)]
    partly = (*whole[:part], exchanged(whole[part], chosen), *whole[part + 1 :])
    asked = [_text(parts) for parts in (whole, revised, partly)]
    before, after, found = (label for label, _ in predict_each(occasion.subject, asked))
    return np.nan if before == after else float(found == after)


def _versions(occasion: Occasion) -> tuple[tuple[str, ...], tuple[str, ...]]:
    """The parts of the text, and of the text as editors changed it."""
    revised = occasion.example and occasion.example.fields.get("revised_text")
    if not revised:
        raise UsageError("this measure needs the text as editors changed it: `revised_text`")
    whole, other = _parts(occasion.text), _parts(revised)
    if len(whole) != len(other):
        raise UsageError("the two versions of a text must be both one text, or both a pair")
    return whole, other


def _parts(text: Any) -> tuple[str, ...]:
    if isinstance(text, str):
        return (text,)
    if isinstance(text, tuple) and len(text) == 2:
        return text
    raise UsageError(f"editors change a text or a pair of texts, not {type(text).__name__}")


def _text(parts: tuple[str, ...]) -> str | tuple[str, ...]:
    return parts[0] if len(parts) == 1 else parts


def _changed_part(whole: tuple[str, ...], revised: tuple[str, ...]) -> int:
    """The first part that differs."""
    pairs = zip(whole, revised, strict=True)
    return next((i for i, (one, other) in enumerate(pairs) if one != other), 0)


def _top_words(
    occasion: Occasion, whole: tuple[str, ...], part: int, changes: list[Exchange]
) -> set[int]:
    """As many words from the top of the changed part as were changed, or put in."""
    segment = "text" if len(whole) == 1 else SEGMENTS[part]
    count = sum(max(each.last - each.first, 1) for each in changes)
    scores = _word_scores(occasion.explanation, segment, whole[part])
    return set(Case(scores, occasion.seed).order()[:count].tolist())


def _word_scores(explanation: Explanation, segment: str, text: str) -> TokenVector:
    """The sum of the scores of each word's tokens."""
    tokens = explanation.tokens
    found = zip(tokens.spans(), tokens.segments, explanation.scores, strict=True)
    placed = [(place, score) for place, name, score in found if place and name == segment]
    sums = [
        sum(score for place, score in placed if overlap(place, word)) for word in words_of(text)
    ]
    return np.array(sums, dtype=np.float64)
