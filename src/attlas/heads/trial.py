"""Triggers put to the test: other texts with them in, and with random words of their frequency."""

from collections import Counter
from collections.abc import Sequence
from dataclasses import dataclass, replace

import numpy as np

from attlas.data.example import Text
from attlas.heads.insertion import draw_alike, insert
from attlas.mathematics.intervals import bootstrap_mean
from attlas.models.encoding.request import Request
from attlas.models.subject import Subject
from attlas.progress import Step, Watch
from attlas.results.triggers import Effect, Trigger, TriggerWord

CUT = Request(truncate=True)  # a text that a trigger makes too long loses its end


Gold = tuple[Text, int]  # a text and the number of its label


@dataclass(frozen=True, eq=False)
class Trial:
    """Texts to put triggers into, and the words that a control is drawn from."""

    subject: Subject
    examples: Sequence[Gold]
    counts: Counter[str]
    draws: int
    random: np.random.Generator

    def measure(self, chosen: Sequence[Trigger], watch: Watch) -> list[Trigger]:
        """The triggers with what they do."""
        before = self._right([self.examples_with(())])[0]
        measured = []
        for number, trigger in enumerate(chosen):
            watch(Step(f"trying {trigger.text}", number, len(chosen)))
            controls = [
                draw_alike(trigger.words, self.counts, self.random) for _ in range(self.draws)
            ]
            sets = [trigger.words, *controls]
            right = self._right([self.examples_with(words) for words in sets])
            measured.append(replace(trigger, effects=self._effects(before, right)))
        return measured

    def examples_with(self, words: Sequence[TriggerWord]) -> list[Text]:
        """All texts with these words put in."""
        return [insert(text, words) if words else text for text, _ in self.examples]

    def _right(self, sets: Sequence[Sequence[Text]]) -> np.ndarray:
        """Which texts are labelled rightly, `[set, text]`."""
        texts = [text for each in sets for text in each]
        right = np.zeros(len(texts), dtype=bool)
        labels = self.subject.labels
        for question in self.subject.ask(texts, CUT):
            for index, target, _ in question.answers():
                gold = self.examples[index % len(self.examples)][1]
                right[index] = target.name == labels[gold]
        return right.reshape(len(sets), -1)

    def _effects(self, before: np.ndarray, right: np.ndarray) -> tuple[Effect, ...]:
        gold = np.array([label for _, label in self.examples])
        after, control = right[0].astype(float), right[1:].mean(axis=0)
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
