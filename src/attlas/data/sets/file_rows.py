"""The rows of a data set's files, and the groups of rows that make one Example."""

import json
from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from itertools import zip_longest
from pathlib import Path

from attlas.data.example import Record
from attlas.data.files.lines import lines
from attlas.errors import UsageError

ENDINGS = (".jsonl", ".jsonl.gz")
MIDDLE = 2  # of the labels 0 to 4
# Other names of a split's file: a slice of the split, or another convention.
OTHER_NAMES = {"train": ("train_slice",), "dev": ("val", "validation", "dev_matched")}


@dataclass(frozen=True)
class FileRow:
    """One record, as a line of JSON or already parsed, and its place in the source.

    A line is parsed only when its record is needed, so rows outside a sample cost little.
    """

    place: str
    content: str | Record

    def record(self) -> Record:
        """Parse the record."""
        if isinstance(self.content, dict):
            return self.content
        try:
            record = json.loads(self.content)
        except (ValueError, RecursionError) as error:
            raise UsageError(f"{self.place}: not JSON: {error}") from error
        if not isinstance(record, dict):
            raise UsageError(f"{self.place}: a record is an object, not {type(record).__name__}")
        return record


RowGroup = tuple[FileRow, ...]  # the rows that make one Example


def find_file(folder: Path, stem: str) -> Path | None:
    """Find the file of this name in a folder, compressed or not."""
    stems = (stem, *OTHER_NAMES.get(stem, ()))
    paths = (folder / f"{each}{ending}" for each in stems for ending in ENDINGS)
    return next((path for path in paths if path.is_file()), None)


def read_rows(folder: Path, stem: str) -> Iterator[FileRow]:
    """Read the rows of one file, in order."""
    path = find_file(folder, stem)
    if path is None:
        raise UsageError(f"{folder} has no {stem}.jsonl or {stem}.jsonl.gz")
    for number, line in enumerate(lines(path), 1):
        if line.strip():
            yield FileRow(f"{path}, line {number}", line)


def single_rows(folder: Path, stems: Sequence[str]) -> Iterator[RowGroup]:
    """Group every row by itself."""
    return ((row,) for stem in stems for row in read_rows(folder, stem))


def with_passage(folder: Path, stems: Sequence[str]) -> Iterator[RowGroup]:
    """Group every row of the second file with its passage from the first."""
    passages = {row.record()["docid"]: row for row in read_rows(folder, stems[0])}
    for row in read_rows(folder, stems[1]):
        name = row.record().get("docid")
        if name not in passages:
            raise UsageError(f"{row.place}: there is no passage {name!r}")
        yield row, passages[name]


def with_revisions(folder: Path, stems: Sequence[str]) -> Iterator[RowGroup]:
    """Group every row of the first file with its two revisions from each of the others."""
    originals, *others = (read_rows(folder, stem) for stem in stems)
    columns = [originals, *(half for other in others for half in (other, other))]
    for group in zip_longest(*columns):
        if None in group:
            raise UsageError(f"{folder}: the rows of {', '.join(stems)} do not match")
        yield group


def decided_rows(folder: Path, stems: Sequence[str]) -> Iterator[RowGroup]:
    """Each row whose label is not the middle one of five."""
    return (group for group in single_rows(folder, stems) if group[0].record()["label"] != MIDDLE)


def by_text(folder: Path, stems: Sequence[str]) -> Iterator[RowGroup]:
    """Group the rows of all annotators of a text."""
    groups: dict[str, list[FileRow]] = {}
    for stem in stems:
        for row in read_rows(folder, stem):
            groups.setdefault(f"{stem} {row.record().get('text_id')}", []).append(row)
    return (tuple(group) for group in groups.values())
