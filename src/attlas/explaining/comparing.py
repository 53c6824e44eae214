"""The verb `compare`: several explanations side by side, word by word."""

from collections.abc import Sequence
from dataclasses import replace
from itertools import combinations
from typing import Any

import numpy as np

from attlas.errors import UsageError
from attlas.explaining.aligning import aligned_words
from attlas.mathematics.rank_agreement import kendall, top_overlap
from attlas.results import Comparison, Explanation
from attlas.results.comparison import MANY, ComparedWord, PairAgreement
from attlas.shapes import MethodScores
from attlas.verbs import refuse_unknown

TOP = 5  # words that are compared as the strongest, if there are twice as many
SHOWN = 32  # characters of a text in a name
FACTS = {"method": "methods", "target": "targets", "model": "models", "text": "texts"}


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
    words = aligned_words([each.tokens for each in found], called)
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
    signed = {found[index].origin.signed for index in pair}
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
