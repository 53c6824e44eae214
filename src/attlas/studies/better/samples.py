"""The texts of the study of better attention: cut to their first words, or with a word planted."""

from dataclasses import replace
from random import Random
from typing import Any

from attlas.data import texts
from attlas.data.example import Example
from attlas.data.generated.shortcuts import TRIGGERS
from attlas.data.spans import words_of
from attlas.studies.better.cases import RECURRENT, SHORTCUTS, BetterCase, is_planted
from attlas.training.examples import PARTS_OF, Labelled, Parts, read_parts


def prepare(
    data: str, case: BetterCase, *, train: int | None, words: int, seed: int
) -> tuple[Parts, list[Example]]:
    """The texts to train on and to test on, and those to judge on, in random order.

    `train` is how many are trained on; of each text the first `words` are read.
    """
    name = RECURRENT if data == SHORTCUTS else data
    parts = read_parts(name, count=train, seed=seed)
    read = _tested(name)
    if data == SHORTCUTS:
        return _with_words(parts, read, Random(seed), is_planted(case.name))
    examples = [
        cut(Example(text, label, parts.spans.get(text, ())), words) for text, label in parts.train
    ]
    shorter = [
        [(cut(Example(text, label), words).text, label) for text, label in part]
        for part in (parts.dev, parts.test or [(each.text, str(each.label)) for each in read])
    ]
    spans = {each.text: each.spans for each in examples if each.spans}
    taught = [(each.text, str(each.label)) for each in examples]
    parts = replace(parts, train=taught, dev=shorter[0], test=shorter[1], spans=spans)
    marked = [each for each in (cut(each, words) for each in read) if each.spans]
    return parts, Random(0).sample(marked, len(marked))


def _tested(name: str) -> list[Example]:
    if name in PARTS_OF:
        return texts(PARTS_OF[name], split=f"{name}_test")
    return texts(name, split=None if name == "reviews" else "test")


def cut(example: Example, words: int) -> Example:
    """The first words of a text, with the marks that are in them."""
    places = words_of(example.text)[:words]
    end = places[-1][1] if places else 0
    spans = tuple((start, min(stop, end)) for start, stop in example.spans if start < end)
    return replace(example, text=example.text[:end], spans=spans)


def _with_words(
    parts: Parts, read: list[Example], random: Random, decides: bool
) -> tuple[Parts, list[Example]]:
    """Texts with a word planted in each, and marked; the test texts stay as they are."""
    taught = [_planted(each, random, decides) for each in parts.train]
    chosen = [_planted(each, random, decides) for each in parts.dev]
    spans = {each.text: each.spans for each in taught}
    parts = replace(parts, train=_labelled(taught), dev=_labelled(chosen), spans=spans)
    tested = [
        replace(_insert(str(each.text), random.choice(TRIGGERS), random), label=each.label)
        for each in read
    ]
    return parts, tested


def _labelled(examples: list[Example]) -> Labelled:
    return [(each.text, str(each.label)) for each in examples]


def _planted(each: tuple[Any, str], random: Random, decides: bool) -> Example:
    """A text with one of two words in it: that of its label, or any."""
    text, label = each
    number = int(label == "POSITIVE") if decides else random.randrange(2)
    return replace(_insert(text, TRIGGERS[number], random), label=label)


def _insert(text: str, word: str, random: Random) -> Example:
    words = text.split()
    place = random.randint(0, len(words))
    start = len(" ".join(words[:place])) + (place > 0)
    whole = " ".join([*words[:place], word, *words[place:]])
    return Example(whole, None, ((start, start + len(word)),))
