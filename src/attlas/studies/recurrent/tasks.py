"""The data of the studies on recurrent models: labelled texts for training and for testing."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from random import Random

from attlas.data import texts
from attlas.data.example import Example, Text
from attlas.data.generated import facts
from attlas.errors import UnknownNameError

Labelled = list[tuple[Text, str]]
SENTIMENT = ("NEGATIVE", "POSITIVE")
FEWEST_WORDS = 6  # shorter sentences of sst are left out, as Jain and Wallace do
DEV_SHARE = 0.1  # of the training texts, where a set has no dev split


@dataclass(frozen=True)
class RecurrentTask:
    """Labelled texts of one task, and how a model reads them."""

    name: str
    train: Labelled
    dev: Labelled
    test: Labelled
    labels: tuple[str, ...]
    reads: str = "text"
    longest: int = 512  # tokens; the rest of a text is cut
    epochs: int = 8


def read_task(
    name: str, *, train_on: int | None = None, count: int | None = None, seed: int = 0
) -> RecurrentTask:
    """Read a task: at most `train_on` texts to train on, and `count` to test on, drawn by `seed`.

    sst is sst5 without its neutral sentences; ag_news is World against Business, 20newsgroups
    baseball against hockey, four_newsgroups medicine and space too; facts are generated stories
    with a question that needs one fact.
    """
    if name not in READERS:
        raise UnknownNameError("task", name, READERS)
    return READERS[name](train_on, count, seed)


def _sst(train_on: int | None, count: int | None, seed: int) -> RecurrentTask:
    def read(split: str, most: int | None) -> Labelled:
        every = texts("sst5", split=split)
        rows = [
            (each.text, str(each.label).removeprefix("VERY "))
            for each in every
            if each.label != "NEUTRAL" and len(str(each.text).split()) >= FEWEST_WORDS
        ]
        return _drawn(rows, most, seed)

    return RecurrentTask(
        "sst", read("train", train_on), read("dev", None), read("test", count), SENTIMENT
    )


def _sst5(train_on: int | None, count: int | None, seed: int) -> RecurrentTask:
    from attlas.data.sets.readers import STARS

    train, dev, test = (
        [(each.text, str(each.label)) for each in texts("sst5", split=split, count=most, seed=seed)]
        for split, most in (("train", train_on), ("dev", None), ("test", count))
    )
    return RecurrentTask("sst5", train, dev, test, STARS)


def _split_set(
    source: str, name: str, labels: tuple[str, ...], longest: int, epochs: int
) -> Callable[[int | None, int | None, int], RecurrentTask]:
    """A reader of a set without a dev split, of the texts with these labels."""

    def read(train_on: int | None, count: int | None, seed: int) -> RecurrentTask:
        train = _drawn(_labelled(texts(source, split="train"), labels), train_on, seed)
        Random(seed).shuffle(train)
        held = max(1, round(DEV_SHARE * len(train)))
        test = _drawn(_labelled(texts(source, split="test"), labels), count, seed)
        return RecurrentTask(
            name, train[held:], train[:held], test, labels, longest=longest, epochs=epochs
        )

    return read


def _facts(train_on: int | None, count: int | None, seed: int) -> RecurrentTask:
    sizes = (
        (train_on or 6000, False, seed),
        (400, True, seed + 1),
        (count or 1000, True, seed + 2),
    )
    train, dev, test = (
        [(each.text, str(each.label)) for each in facts.generate(size, at, "one", held_out=held)]
        for size, held, at in sizes
    )
    return RecurrentTask("facts", train, dev, test, facts.PLACES, reads="question", epochs=15)


def _reviews(train_on: int | None, count: int | None, seed: int) -> RecurrentTask:
    rows = _labelled(texts("reviews"), SENTIMENT)
    Random(seed).shuffle(rows)
    train, dev, test = rows[:96], rows[96:112], rows[112:]
    return RecurrentTask("reviews", train[:train_on], dev, test[:count], SENTIMENT, epochs=4)


def _labelled(examples: Sequence[Example], labels: Sequence[str]) -> Labelled:
    return [
        (each.text, str(each.label))
        for each in examples
        if each.label in labels and str(each.text).strip()
    ]


def _drawn(rows: Labelled, most: int | None, seed: int) -> Labelled:
    """At most so many rows, drawn by the seed."""
    if most is None or most >= len(rows):
        return rows
    return Random(seed).sample(rows, most)


READERS: Mapping[str, Callable[[int | None, int | None, int], RecurrentTask]] = {
    "sst": _sst,
    "sst5": _sst5,
    "imdb": _split_set("imdb", "imdb", SENTIMENT, 256, 4),
    "ag_news": _split_set("ag_news", "ag_news", ("World", "Business"), 128, 8),
    "20newsgroups": _split_set(
        "20newsgroups", "20newsgroups", ("rec.sport.baseball", "rec.sport.hockey"), 256, 8
    ),
    "four_newsgroups": _split_set(
        "20newsgroups",
        "four_newsgroups",
        ("rec.sport.baseball", "rec.sport.hockey", "sci.med", "sci.space"),
        256,
        8,
    ),
    "facts": _facts,
    "reviews": _reviews,
}
TASKS = tuple(READERS)
