"""What triggers do to other texts, compared with random words that are as frequent."""

from collections import Counter
from collections.abc import Iterable, Sequence
from dataclasses import dataclass, replace
from math import log

import numpy as np

from attlas.data.example import Text
from attlas.mathematics.intervals import bootstrap_mean
from attlas.models.encoding.request import Request
from attlas.models.subject import Subject
from attlas.progress import Step, Watch
from attlas.results.support.words import word_spans
from attlas.results.triggers import Effect, Trigger, TriggerWord

CUT = Request(truncate=True)  # a text that a trigger makes too long loses its end
POOL = 20  # a control word is drawn from this many words of about the same frequency
SEGMENTS = {"text": 0, "text_a": 0, "text_b": 1}  # the place of a segment in a text or a pair

LabelledText = tuple[Text, int]  # a text and the number of its label


@dataclass(frozen=True, eq=False)
class TriggerTest:
    """Texts to insert triggers into, and the words that controls are drawn from."""

    subject: Subject
    examples: Sequence[LabelledText]
    counts: Counter[str]
    draws: int
    random: np.random.Generator

    def measure(self, chosen: Sequence[Trigger], watch: Watch) -> list[Trigger]:
        """The triggers with their effects."""
        before = self._correct([self.examples_with(())])[0]
        measured = []
        for number, trigger in enumerate(chosen):
            watch(Step(f"trying {trigger.text}", number, len(chosen)))
            controls = [
                draw_controls(trigger.words, self.counts, self.random) for _ in range(self.draws)
            ]
            sets = [trigger.words, *controls]
            correct = self._correct([self.examples_with(words) for words in sets])
            measured.append(replace(trigger, effects=self._effects(before, correct)))
        return measured

    def examples_with(self, words: Sequence[TriggerWord]) -> list[Text]:
        """All texts with these words inserted."""
        return [insert(text, words) if words else text for text, _ in self.examples]

    def _correct(self, sets: Sequence[Sequence[Text]]) -> np.ndarray:
        """Which texts the model labels correctly, `[set, text]`."""
        texts = [text for each in sets for text in each]
        correct = np.zeros(len(texts), dtype=bool)
        labels = self.subject.labels
        for question in self.subject.ask(texts, CUT):
            for index, target, _ in question.answers():
                gold = self.examples[index % len(self.examples)][1]
                correct[index] = target.name == labels[gold]
        return correct.reshape(len(sets), -1)

    def _effects(self, before: np.ndarray, correct: np.ndarray) -> tuple[Effect, ...]:
        gold = np.array([label for _, label in self.examples])
        after, control = correct[0].astype(float), correct[1:].mean(axis=0)
        effects = []
        for number in np.unique(gold):
            own = gold == number
            drop = bootstrap_mean([[float(each)] for each in (control - after)[own]])
            effects.append(
                Effect(
                    self.subject.labels[number],
                    int(own.sum()),
                    float(before[own].mean()),
                    float(after[own].mean()),
                    float(control[own].mean()),
                    drop.mean,
                    drop.low,
                    drop.high,
                )
            )
        return tuple(effects)


def relative_place(text: str, start: int) -> float:
    """Where a word stands among the words of its text: 0 for the first, 1 for the last."""
    spans = word_spans(text)
    before = sum(span[0] < start for span in spans)
    return min(before / (len(spans) - 1), 1.0) if len(spans) > 1 else 0.0


def insert(text: str | tuple[str, str], words: Sequence[TriggerWord]) -> str | tuple[str, str]:
    """A text, or a pair, with these words inserted, each into its own segment."""
    if isinstance(text, str):
        return _insert(text, words)
    first, second = (
        _insert(segment, [word for word in words if SEGMENTS[word.segment] == number])
        for number, segment in enumerate(text)
    )
    return first, second


def _insert(text: str, words: Sequence[TriggerWord]) -> str:
    spans = word_spans(text)
    places = choose_places([word.place for word in words], len(spans) + len(words))
    ordered = sorted(zip(places, (word.text for word in words), strict=True))
    starts = [*(start for start, _ in spans), len(text.rstrip())]
    for number, (place, word) in reversed(list(enumerate(ordered))):
        start = starts[place - number]  # the number of the text's own words before it
        before, behind = text[:start], text[start:]
        left = " " if before and not before[-1].isspace() else ""
        right = " " if behind and not behind[0].isspace() else ""
        text = f"{before}{left}{word}{right}{behind}"
    return text


def choose_places(relative: Sequence[float], count: int) -> list[int]:
    """A place among `count` for each word; if its place is taken, the next free one."""
    taken: list[int] = []
    for share in relative:
        nearest = int(share * (count - 1) + 0.5)
        after = (*range(nearest, count), *reversed(range(nearest)))
        taken.append(next(place for place in after if place not in taken))
    return taken


def count_words(texts: Iterable[str | tuple[str, str]]) -> Counter[str]:
    """How often each word occurs, whatever the case of its letters."""
    segments = (each for text in texts for each in ((text,) if isinstance(text, str) else text))
    return Counter(
        segment[start:stop].casefold()
        for segment in segments
        for start, stop in word_spans(segment)
    )


def draw_controls(
    words: Sequence[TriggerWord], counts: Counter[str], random: np.random.Generator
) -> list[TriggerWord]:
    """For each word another one, drawn from those whose frequency is nearest."""
    own = {word.text.casefold() for word in words}
    others = sorted(set(counts) - own)
    return [
        TriggerWord(_draw_control(word.text, others, counts, random), word.segment, word.place)
        for word in words
    ]


def _draw_control(
    word: str, others: Sequence[str], counts: Counter[str], random: np.random.Generator
) -> str:
    frequency = log(max(counts[word.casefold()], 1))
    distances = np.array([abs(log(counts[other]) - frequency) for other in others])
    order = np.lexsort((random.random(len(others)), distances))  # ties in random order
    return others[int(random.choice(order[:POOL]))]
