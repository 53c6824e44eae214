"""Tables in text files whose fields are separated by commas, tabs, semicolons or bars."""

import csv
import re
from collections.abc import Iterator, Sequence
from pathlib import Path

from attlas.data.files.lines import lines
from attlas.data.files.places import RemoteFile
from attlas.data.files.raw_table import RawTable, TableRow, named_once
from attlas.errors import UsageError

LONGEST_FIELD = 2**31 - 1
UNCLOSED = "a quote is never closed: all lines from here on are one field"
_QUOTED = re.compile(r'"((?:[^"]|"")*)"')
Fields = tuple[int, list[str] | None, str]  # first line, fields, and why there are none


def comma_table(path: Path | RemoteFile) -> RawTable:
    """Read a table with commas, or with the separator that its first line uses instead."""
    head = next(lines(path), "")
    others = {mark: head.count(mark) for mark in ";\t|"}
    likely = max(others, key=lambda mark: others[mark])
    mark = likely if "," not in head and others[likely] else ","
    return _table(path, _parsed(path, mark), mark)


def tab_table(path: Path | RemoteFile) -> RawTable:
    """Read a table with tabs.

    Many such files ignore the rules of quotes and write one row a line. So a quoted field may span
    lines only in a file that cannot be read in any other way.
    """
    return _table(path, _parsed(path, "\t") if _has_long_fields(path) else _split(path), "\t")


def _table(path: Path | RemoteFile, rows: Iterator[Fields], mark: str) -> RawTable:
    _, head, _ = next(rows, (0, None, ""))
    if not head:
        raise UsageError(f"{path} has no first line with column names")
    names = tuple(name.strip() or f"column {number}" for number, name in enumerate(head, 1))
    named_once(path, names)
    return RawTable(names, lambda needed: (_row(each, names, mark) for each in rows))


def _row(fields: Fields, names: Sequence[str], mark: str) -> TableRow:
    place, cells, problem = fields
    if cells is None:
        return TableRow(place, None, problem)
    if len(names) == 1:  # one column has no separators: the marks belong to the text
        cells = [mark.join(cells)]
    if len(cells) != len(names):
        counts = f"{len(cells)} for {len(names)} columns: {mark.join(cells)}"
        return TableRow(place, None, "the number of fields is not that of the columns", counts)
    return TableRow(place, dict(zip(names, cells, strict=True)))


def _parsed(path: Path | RemoteFile, mark: str) -> Iterator[Fields]:
    """Read the fields of each row by the rules of quotes, skipping blank lines."""
    reader = csv.reader(lines(path), delimiter=mark, strict=True)
    while True:
        start = reader.line_num + 1
        try:
            fields = _next(reader)
        except StopIteration:
            return
        except csv.Error as error:
            at_the_end = "unexpected end of data" in str(error)
            yield start, None, UNCLOSED if at_the_end else f"wrong quotes: {error}"
        else:
            if fields:
                yield start, fields, ""


def _next(reader: Iterator[list[str]]) -> list[str]:
    """Read the next row; the limit on long fields is global, so it is restored."""
    before = csv.field_size_limit(LONGEST_FIELD)
    try:
        return next(reader)
    finally:
        csv.field_size_limit(before)


def _split(path: Path | RemoteFile) -> Iterator[Fields]:
    for number, line in enumerate(lines(path), 1):
        if line.strip("\r\n"):
            yield number, [_unquoted(each) for each in line.rstrip("\r\n").split("\t")], ""


def _unquoted(field: str) -> str:
    quoted = _QUOTED.fullmatch(field)
    return quoted[1].replace('""', '"') if quoted else field


def _has_long_fields(path: Path | RemoteFile) -> bool:
    """Whether lines have different numbers of tabs, but all rows agree by the rules of quotes."""
    if len({line.count("\t") for line in lines(path) if line.strip("\r\n")}) < 2:
        return False
    return len({len(fields or ()) for _, fields, _ in _parsed(path, "\t")}) == 1
