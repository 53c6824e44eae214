"""Words put into other texts at the place they had in their own, and others as frequent as they."""

from collections import Counter
from collections.abc import Iterable, Sequence
from math import log

import numpy as np

from attlas.results.support.words import word_spans
from attlas.results.triggers import TriggerWord

POOL = 20  # words that are about as frequent, of which one is drawn
PARTS = {"text": 0, "text_a": 0, "text_b": 1}  # where a segment stands in a text or a pair


def relative_place(text: str, start: int) -> float:
    """Where a word stands among the words of its text: 0 for the first, 1 for the last."""
    spans = word_spans(text)
    before = sum(span[0] < start for span in spans)
    return min(before / (len(spans) - 1), 1.0) if len(spans) > 1 else 0.0


def insert(text: str | tuple[str, str], words: Sequence[TriggerWord]) -> str | tuple[str, str]:
    """A text, or a pair, with these words put in, each into its own part."""
    if isinstance(text, str):
        return _insert(text, words)
    first, second = (
        _insert(part, [word for word in words if PARTS[word.segment] == number])
        for number, part in enumerate(text)
    )
    return first, second


def _insert(text: str, words: Sequence[TriggerWord]) -> str:
    spans = word_spans(text)
    places = choose_places([word.place for word in words], len(spans) + len(words))
    found = sorted(zip(places, (word.text for word in words), strict=True))
    starts = [*(start for start, _ in spans), len(text.rstrip())]
    for number, (place, word) in reversed(list(enumerate(found))):
        start = starts[place - number]  # so many of the text's own words stand before it
        before, behind = text[:start], text[start:]
        left = " " if before and not before[-1].isspace() else ""
        right = " " if behind and not behind[0].isspace() else ""
        text = f"{before}{left}{word}{right}{behind}"
    return text


def choose_places(relative: Sequence[float], count: int) -> list[int]:
    """A place of its own among so many for each; one that is taken gives way to the next free."""
    taken: list[int] = []
    for share in relative:
        wanted = int(share * (count - 1) + 0.5)
        after = (*range(wanted, count), *reversed(range(wanted)))
        taken.append(next(place for place in after if place not in taken))
    return taken


def count_words(texts: Iterable[str | tuple[str, str]]) -> Counter[str]:
    """How often each word occurs, whatever the case of its letters."""
    parts = (part for text in texts for part in ((text,) if isinstance(text, str) else text))
    return Counter(
        part[start:stop].casefold() for part in parts for start, stop in word_spans(part)
    )


def draw_alike(
    words: Sequence[TriggerWord], counts: Counter[str], random: np.random.Generator
) -> list[TriggerWord]:
    """For each word another one, drawn from those whose frequency is nearest."""
    own = {word.text.casefold() for word in words}
    others = sorted(set(counts) - own)
    return [
        TriggerWord(_alike(word.text, others, counts, random), word.segment, word.place)
        for word in words
    ]


def _alike(
    word: str, others: Sequence[str], counts: Counter[str], random: np.random.Generator
) -> str:
    frequency = log(max(counts[word.casefold()], 1))
    distances = np.array([abs(log(counts[other]) - frequency) for other in others])
    order = np.lexsort((random.random(len(others)), distances))  # equals in any order
    return others[int(random.choice(order[:POOL]))]
