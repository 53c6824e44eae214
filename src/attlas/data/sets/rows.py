"""The lines of a data set's files: read one by one, parsed only when asked."""

import gzip
import json
import random
import zlib
from collections.abc import Iterable, Iterator
from dataclasses import dataclass
from io import TextIOWrapper
from pathlib import Path
from typing import Any, TypeVar

from attlas.errors import UsageError

Record = dict[str, Any]
Item = TypeVar("Item")
ENDINGS = (".jsonl", ".jsonl.gz")
# What a split is called where it is only a part of the set, or by another habit.
OTHER_NAMES = {"train": ("train_slice",), "dev": ("val", "validation", "dev_matched")}


@dataclass(frozen=True)
class Row:
    """One record, as the line it is written in or already parsed, and where it stands."""

    place: str
    content: str | Record

    def record(self) -> Record:
        """The record, parsed."""
        if isinstance(self.content, dict):
            return self.content
        try:
            record = json.loads(self.content)
        except ValueError as error:
            raise UsageError(f"{self.place}: not JSON: {error}") from error
        if not isinstance(record, dict):
            raise UsageError(f"{self.place}: a record is an object, not {type(record).__name__}")
        return record


def file_of(folder: Path, stem: str) -> Path | None:
    """The file of this name in a folder, compressed or not."""
    stems = (stem, *OTHER_NAMES.get(stem, ()))
    paths = (folder / f"{each}{ending}" for each in stems for ending in ENDINGS)
    return next((path for path in paths if path.is_file()), None)


def rows(folder: Path, stem: str) -> Iterator[Row]:
    """The records of one file, in order."""
    path = file_of(folder, stem)
    if path is None:
        raise UsageError(f"{folder} has no {stem}.jsonl or {stem}.jsonl.gz")
    try:
        with _opened(path) as lines:
            for number, line in enumerate(lines, 1):
                if line.strip():
                    yield Row(f"{path}, line {number}", line)
    except (OSError, EOFError, UnicodeDecodeError, zlib.error) as error:
        raise UsageError(f"{path} cannot be read: {error}") from error


def _opened(path: Path) -> TextIOWrapper:
    if path.suffix == ".gz":
        return gzip.open(path, "rt", encoding="utf-8")
    return path.open(encoding="utf-8")


def sample(items: Iterable[Item], count: int | None, seed: int) -> list[Item]:
    """At most `count` items, each as likely as any other, in their order; None takes all."""
    if count is None:
        return list(items)
    if count < 0:
        raise UsageError(f"count is how many texts to take, 0 or more, not {count}")
    chance = random.Random(seed)
    kept: list[tuple[int, Item]] = []
    for position, item in enumerate(items):
        if len(kept) < count:
            kept.append((position, item))
        elif (place := chance.randrange(position + 1)) < count:
            kept[place] = (position, item)
    return [item for _, item in sorted(kept, key=lambda pair: pair[0])]
