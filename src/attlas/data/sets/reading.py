"""Data sets by name, read from the folder that ATTLAS_DATA names or from the hub."""

import os
from collections.abc import Iterator, Sequence
from pathlib import Path

from attlas.data.example import Example
from attlas.data.sets.catalogue import NAMED, Named
from attlas.data.sets.hub import hub_installed, hub_rows
from attlas.data.sets.readers import Reader
from attlas.data.sets.rows import file_of, sample
from attlas.data.sets.units import Unit
from attlas.errors import UsageError


def named_examples(name: str, split: str | None, count: int | None, seed: int) -> list[Example]:
    """The Examples of one split of a data set, all or a sample."""
    source = NAMED[name]
    units = _units(name, source, split)
    return [read_unit(source.read, unit) for unit in sample(units, count, seed)]


def read_unit(read: Reader, unit: Unit) -> Example:
    """One Example; an error says which row it is in."""
    records = [row.record() for row in unit]
    try:
        return read(*records)
    except KeyError as error:
        raise UsageError(f"{unit[0].place}: there is no {error}") from error
    except (TypeError, ValueError, IndexError, AttributeError) as error:
        raise UsageError(f"{unit[0].place}: not a record of this set: {error}") from error


def choose_split(name: str, split: str | None, there: Sequence[str]) -> str:
    """The split asked for, or the one to test on where none is."""
    if split is None:
        return next((each for each in ("test", "dev") if each in there), there[0])
    if split.replace("-", "_") not in there:
        raise UsageError(f"{name} has no split {split!r}: allowed: {', '.join(there)}")
    return split.replace("-", "_")


def _units(name: str, source: Named, split: str | None) -> Iterator[Unit]:
    folder = _folder(name)
    if folder is not None:
        there = [
            each
            for each, stems in source.splits.items()
            if all(file_of(folder, stem) for stem in stems)
        ]
        if not there:
            raise UsageError(f"{folder} has none of the files of {name}: {_files(source)}")
        return source.units(folder, source.splits[choose_split(name, split, there)])
    if source.hub is None or not hub_installed():
        raise UsageError(_not_there(name, source))
    chosen = choose_split(name, split, list(source.splits))
    return ((row,) for row in hub_rows(source.hub, chosen))


def _folder(name: str) -> Path | None:
    home = os.environ.get("ATTLAS_DATA")
    if not home:
        return None
    if not Path(home).is_dir():
        raise UsageError(f"ATTLAS_DATA names a folder that is not there: {home}")
    folder = Path(home) / name
    return folder if folder.is_dir() else None


def _files(source: Named) -> str:
    stems = dict.fromkeys(stem for stems in source.splits.values() for stem in stems)
    return ", ".join(f"{stem}.jsonl" for stem in stems)


def _not_there(name: str, source: Named) -> str:
    home = os.environ.get("ATTLAS_DATA")
    why = f"{home} has no folder {name}" if home else f"{name} is not part of Attlas"
    other = ", or install `datasets` to have it from the hub" if source.hub else ""
    return (
        f"{why}: set ATTLAS_DATA to a folder that has {name}/ "
        f"with {_files(source)} (or .jsonl.gz){other}"
    )
