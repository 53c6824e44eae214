"""texts: Examples by name, written for Attlas, generated, or from a data set."""

from collections.abc import Callable
from importlib import import_module

from attlas.data.example import Example
from attlas.data.sets.catalogue import NAMED
from attlas.data.sets.reading import choose_split, named_examples, read_unit
from attlas.data.sets.reviews import review, review_rows
from attlas.data.sets.rows import sample
from attlas.errors import UnknownNameError, UsageError

REVIEWS = "short reviews written for Attlas, with the words that carry the label"
GENERATED = {
    "recall": "sequences in which a key seen before tells the value that follows",
    "dates": "dates as people write them, to be written as YYYY-MM-DD",
    "facts": "short stories with a question, and the sentences that answer it",
    "shortcuts": "texts with a planted word or pair of words that decides the label",
}


def texts(
    name: str, *, split: str | None = None, count: int | None = None, seed: int = 0
) -> list[Example]:
    """Examples by name: "reviews", a generated set, or a data set (see `texts_names`).

    `split` is the test split if not given, or the dev split of a set that has no other labels
    to test on. `count` takes a sample that `seed` decides, or all if there are fewer; a generated
    set makes `count` texts, 100 if not given, others for another `seed`. Data sets are read from
    the folder that the environment variable ATTLAS_DATA names, or from the hub where `datasets`
    is installed.
    """
    key = name.lower().replace("-", "_")
    if key == "reviews":
        return _reviews(split, count, seed)
    if key in GENERATED:
        return _generated(key, split, 100 if count is None else count, seed)
    if key in NAMED:
        return named_examples(key, split, count, seed)
    raise UnknownNameError("set of texts", name, texts_names())


def texts_names() -> dict[str, str]:
    """The names that `texts` knows, each with one line on what it is."""
    return {"reviews": REVIEWS, **GENERATED, **{name: set_.about for name, set_ in NAMED.items()}}


def _reviews(split: str | None, count: int | None, seed: int) -> list[Example]:
    choose_split("reviews", split, ["test"])
    return [read_unit(review, (row,)) for row in sample(review_rows(), count, seed)]


def _generated(name: str, split: str | None, count: int, seed: int) -> list[Example]:
    if count < 0:
        raise UsageError(f"count is how many texts to make, 0 or more, not {count}")
    choose_split(name, split, ["test"])
    generate: Callable[[int, int], list[Example]]
    generate = import_module(f"attlas.data.generated.{name}").generate
    return generate(count, seed)
