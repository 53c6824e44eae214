"""texts: Examples by name, from reviews written for Attlas, a generator or a data set."""

import os
from collections.abc import Callable, Iterator
from importlib import import_module
from pathlib import Path

from attlas.data.example import Example
from attlas.data.sampling import choose_split, sample_and_total
from attlas.data.sets.catalogue import DATA_SETS, NamedSet
from attlas.data.sets.file_rows import RowGroup, find_file, single_rows
from attlas.data.sets.hub import hub_installed, hub_rows
from attlas.data.sets.readers import Reader, review
from attlas.errors import UnknownNameError, UsageError

REVIEWS = {
    "reviews": "plain reviews written for Attlas, with the words that carry the label",
    "reviews_hard": "reviews full of turns and irony written for Attlas, with such words as well",
}
GENERATED = {
    "agreement": "beginnings of sentences whose first noun decides the number of the verb",
    "recall": "sequences in which a key seen before determines the value that follows",
    "dates": "dates as people write them, to be written as YYYY-MM-DD",
    "facts": "short stories with a question, and the sentences that answer it",
    "shortcuts": "texts with a planted word or pair of words that decides the label",
}


def texts(
    name: str, *, split: str | None = None, count: int | None = None, seed: int = 0
) -> list[Example]:
    """Read Examples by name: reviews, a generated set, or a data set (see `texts_names`).

    `split` defaults to the test split, or to dev where the test split has no labels. `count` draws
    a sample by the `seed`, or takes all if there are fewer. A generated set makes `count` texts,
    100 by default, and different ones for each `seed`. Data sets are read from the folder named by
    the environment variable ATTLAS_DATA, or from the hub where `datasets` is installed.
    """
    return texts_and_total(name, split, count, seed)[0]


def texts_and_total(
    name: str, split: str | None, count: int | None, seed: int
) -> tuple[list[Example], int | None]:
    """What `texts` reads, and how many there are to draw from; None if there is no end of them."""
    key = name.lower().replace("-", "_")
    if key in GENERATED:
        return _generated(key, split, 100 if count is None else count, seed), None
    if key in REVIEWS:
        choose_split(key, split, ["test"])
        read, rows = review, review_rows(key)
    elif key in DATA_SETS:
        read, rows = DATA_SETS[key].read, _row_groups(key, DATA_SETS[key], split)
    else:
        raise UnknownNameError("set of texts", name, texts_names())
    groups, total = sample_and_total(rows, count, seed)
    return [_read(read, group) for group in groups], total


def check_split(name: str, split: str | None) -> None:
    """Refuse a set that is not at hand, or a split that it does not have; nothing is read."""
    key = name.lower().replace("-", "_")
    if key in DATA_SETS:
        _where(key, DATA_SETS[key], split)
    else:
        choose_split(key, split, ["test"])


def texts_names() -> dict[str, str]:
    """Map each name that `texts` knows to one line on what it is."""
    sets = {name: each.about for name, each in DATA_SETS.items()}
    return {**REVIEWS, **GENERATED, **sets}


def review_rows(name: str) -> Iterator[RowGroup]:
    """Read the rows of a set of reviews."""
    return single_rows(Path(__file__).parent / "sets", [name])


def _generated(name: str, split: str | None, count: int, seed: int) -> list[Example]:
    if count < 0:
        raise UsageError(f"count is how many texts to make, 0 or more, not {count}")
    choose_split(name, split, ["test"])
    generate: Callable[[int, int], list[Example]]
    generate = import_module(f"attlas.data.generated.{name}").generate
    return generate(count, seed)


def _read(read: Reader, group: RowGroup) -> Example:
    """Make one Example; an error names the row."""
    records = [row.record() for row in group]
    try:
        return read(*records)
    except KeyError as error:
        raise UsageError(f"{group[0].place}: there is no {error}") from error
    except (TypeError, ValueError, IndexError, AttributeError) as error:
        raise UsageError(f"{group[0].place}: not a record of this set: {error}") from error


def _row_groups(name: str, source: NamedSet, split: str | None) -> Iterator[RowGroup]:
    folder, chosen = _where(name, source, split)
    if folder is not None:
        return source.groups(folder, source.splits[chosen])
    assert source.hub is not None
    return ((row,) for row in hub_rows(source.hub, chosen))


def _where(name: str, source: NamedSet, split: str | None) -> tuple[Path | None, str]:
    """The folder of a data set, None for the hub, and the split to read."""
    folder = _folder(source.folder or name)
    if folder is None:
        if source.hub is None or not hub_installed():
            raise UsageError(_not_available(name, source))
        return None, choose_split(name, split, list(source.splits))
    available = [
        each
        for each, stems in source.splits.items()
        if all(find_file(folder, stem) for stem in stems)
    ]
    if not available:
        raise UsageError(f"{folder} has none of the files of {name}: {_files(source)}")
    return folder, choose_split(name, split, available)


def _folder(name: str) -> Path | None:
    home = os.environ.get("ATTLAS_DATA")
    if not home:
        return None
    if not Path(home).is_dir():
        raise UsageError(f"ATTLAS_DATA names a folder that does not exist: {home}")
    folder = Path(home) / name
    return folder if folder.is_dir() else None


def _files(source: NamedSet) -> str:
    stems = dict.fromkeys(stem for stems in source.splits.values() for stem in stems)
    return ", ".join(f"{stem}.jsonl" for stem in stems)


def _not_available(name: str, source: NamedSet) -> str:
    home, place = os.environ.get("ATTLAS_DATA"), source.folder or name
    why = f"{home} has no folder {place}" if home else f"{name} is not part of Attlas"
    other = ", or install `datasets` to get it from the hub" if source.hub else ""
    return (
        f"{why}: set ATTLAS_DATA to a folder that has {place}/ "
        f"with {_files(source)} (or .jsonl.gz){other}"
    )
