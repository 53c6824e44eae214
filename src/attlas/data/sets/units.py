"""The rows that make one Example: mostly one, sometimes rows of several files together."""

from collections.abc import Iterator, Sequence
from itertools import zip_longest
from pathlib import Path

from attlas.data.sets.rows import Row, rows
from attlas.errors import UsageError

Unit = tuple[Row, ...]


def one_row(folder: Path, stems: Sequence[str]) -> Iterator[Unit]:
    """Every row of these files by itself."""
    return ((row,) for stem in stems for row in rows(folder, stem))


def with_passage(folder: Path, stems: Sequence[str]) -> Iterator[Unit]:
    """Every row of the second file with the passage of the first that it is about."""
    passages = {row.record()["docid"]: row for row in rows(folder, stems[0])}
    for row in rows(folder, stems[1]):
        name = row.record().get("docid")
        if name not in passages:
            raise UsageError(f"{row.place}: there is no passage {name!r}")
        yield row, passages[name]


def with_revisions(folder: Path, stems: Sequence[str]) -> Iterator[Unit]:
    """Every row of the first file with the two that stand for it in each of the others."""
    originals, *others = (rows(folder, stem) for stem in stems)
    columns = [originals, *(half for other in others for half in (other, other))]
    for unit in zip_longest(*columns):
        if None in unit:
            raise UsageError(f"{folder}: {', '.join(stems)} do not have rows for each other")
        yield unit


def by_text(folder: Path, stems: Sequence[str]) -> Iterator[Unit]:
    """The rows of all annotators of a text together."""
    units: dict[str, list[Row]] = {}
    for stem in stems:
        for row in rows(folder, stem):
            units.setdefault(f"{stem} {row.record().get('text_id')}", []).append(row)
    return (tuple(unit) for unit in units.values())
