"""The verb `triggers`: words that a model over-trusts, put into other texts.

Hao, Dong, Wei and Xu, "Self-Attention Attribution", AAAI 2021.
"""

from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from attlas.data.example import Example, Text
from attlas.errors import UnsupportedModelError, UsageError
from attlas.explaining.order import Order, check_subject, origin
from attlas.heads.extraction import extract
from attlas.methods import METHODS
from attlas.models.resolve import Request, find_label
from attlas.models.subject import Subject
from attlas.quantities.insertion import count_words, draw_alike, insert
from attlas.quantities.intervals import bootstrap_mean
from attlas.results.triggers import Effect, Trigger, Triggers, TriggerWord

VERB = "triggers"
READING = (
    "Each row: words that one prediction rested on, put into other texts at the same place. The "
    "drop that counts is the one beyond random words that are as frequent, put there too. "
    "The strongest of many is partly luck: an interval is that of one trigger alone."
)
CUT = Request(truncate=True)


@dataclass(frozen=True)
class Step:
    """How far the work is."""

    what: str
    done: int
    total: int


Watch = Callable[[Step], None]


def triggers(
    subject: Subject,
    data: Iterable[Any],
    *,
    count: int = 10,
    extract_from: int = 100,
    draws: int = 5,
    least: int | float = 0.0,
    steps: int = 20,
    seed: int = 0,
    watch: Watch = lambda step: None,
) -> Triggers:
    """Find words that a classifier over-trusts, and measure what they do to other texts.

    `data` are Examples (`attlas.texts`) or pairs of a text and its label. Triggers come from up to
    `extract_from` of the texts, half of them at most: from the head with the largest attribution to
    what it predicts. Those of the largest attribution, `count` of them, from each predicted class in
    turn, are put into all other texts, and so are random words of the same frequency, `draws`
    times. What is below `least` is not tried. `seed` decides which texts are which.
    """
    check_subject(subject, VERB)
    _check_model(subject)
    for name, value in {"count": count, "extract_from": extract_from, "draws": draws}.items():
        if value < 1:
            raise UsageError(f"{name} is at least 1, not {value}")
    examples = read_examples(data, subject.labels)
    random = np.random.default_rng(seed)
    order = random.permutation(len(examples)).tolist()
    cut = min(extract_from, len(examples) // 2)
    sources, others = [examples[i] for i in order[:cut]], [examples[i] for i in order[cut:]]
    with torch.inference_mode(False):
        found = [
            trigger
            for trigger in _find(subject, [text for text, _ in sources], steps, watch)
            if trigger.attribution >= least
        ]
        chosen = by_class_in_turn(found)[:count]
        counts = count_words(text for text, _ in examples)
        trial = Trial(subject, others, counts, draws, random)
        measured = trial.measure(chosen, watch)
    options = {
        "count": count,
        "extract_from": extract_from,
        "draws": draws,
        "least": least,
        "steps": steps,
        "seed": seed,
    }
    told = _notes(cut, len(found), len(chosen), len(others), draws)
    made = origin(Order(METHODS["attattr"], CUT, {}), subject, {}, VERB)
    made = replace(made, method=VERB, signed=False, reading=READING, options=options, asked={})
    ordered = sorted(measured, key=lambda each: -each.strongest.drop)
    return Triggers(tuple(ordered), made, told)


def _check_model(subject: Subject) -> None:
    name = subject.task.name if subject.task else "no head"
    if name != "sequence classification" or len(subject.labels) < 2:
        raise UnsupportedModelError(
            f"triggers are for models that classify texts, and {subject.name} is for {name}"
        )


def read_examples(data: Iterable[Any], labels: Sequence[str]) -> list[tuple[Text, int]]:
    """Texts, each once, with the numbers of their labels."""
    found: dict[Text, int] = {}
    for each in data:
        text, label = (each.text, each.label) if isinstance(each, Example) else _pair(each)
        if label is None:
            raise UsageError(f"every text needs its label, and {text!r:.60} has none")
        found.setdefault(text, find_label(labels, label))
    if len(found) < 2:
        raise UsageError(f"triggers need at least two different texts, not {len(found)}")
    if len({isinstance(text, str) for text in found}) > 1:
        raise UsageError("the data are texts or pairs of texts, not some of each")
    return list(found.items())


def _pair(given: Any) -> tuple[Text, Any]:
    if isinstance(given, (tuple, list)) and len(given) == 2:
        text, label = given
        if isinstance(text, str) or (isinstance(text, tuple) and len(text) == 2):
            return text, label
    raise UsageError(f"the data are Examples or pairs (text, label), not {given!r:.60}")


def _find(subject: Subject, texts: Sequence[Text], steps: int, watch: Watch) -> list[Trigger]:
    """The triggers of these texts, the largest attribution first, those of equal words once."""
    found: list[Trigger] = []
    done = 0
    for question in subject.ask(texts, CUT):
        watch(Step("reading", done, len(texts)))
        found += extract(question, steps)
        done += len(question)
    unique: dict[Any, Trigger] = {}
    for each in sorted(found, key=lambda trigger: -trigger.attribution):
        unique.setdefault(tuple((word.text.casefold(), word.segment) for word in each.words), each)
    return list(unique.values())


def by_class_in_turn(found: Sequence[Trigger]) -> list[Trigger]:
    """The first of each predicted class, then the second of each, and so on.

    What a class that is sure of itself owes to attention may be little in all its texts.
    """
    ranks: Counter[str] = Counter()
    ranked = []
    for trigger in found:
        ranked.append((ranks[trigger.predicted], trigger))
        ranks[trigger.predicted] += 1
    return [trigger for _, trigger in sorted(ranked, key=lambda pair: pair[0])]


@dataclass(frozen=True, eq=False)
class Trial:
    """Texts to put triggers into, and the words that a control is drawn from."""

    subject: Subject
    examples: Sequence[tuple[Text, int]]
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


def _notes(read: int, found: int, tried: int, others: int, draws: int) -> tuple[str, ...]:
    return (
        f"{found} different triggers in {read} texts; {tried} of them tried on {others} others, "
        f"each beside {draws} draws of random words.",
    )
