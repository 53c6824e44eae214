"""Tables in text files, their fields parted by commas, tabs and the like."""

import csv
import re
from collections import Counter
from collections.abc import Iterator, Sequence
from pathlib import Path

from attlas.data.files.lines import lines
from attlas.data.files.table import Table, TableRow
from attlas.errors import UsageError

LONGEST_FIELD = 2**31 - 1
UNCLOSED = "a quote is opened and never closed: the lines from here on are one field"
_QUOTED = re.compile(r'"((?:[^"]|"")*)"')
Fields = tuple[int, list[str] | None, str]  # the line it starts in, and why it is none


def comma_table(path: Path) -> Table:
    """A table with commas, or with what else parts the names in its first line."""
    head = next(lines(path), "")
    others = {mark: head.count(mark) for mark in ";\t|"}
    likely = max(others, key=lambda mark: others[mark])
    mark = likely if "," not in head and others[likely] else ","
    return _table(path, _parsed(path, mark), mark)


def tab_table(path: Path) -> Table:
    """A table with tabs.

    Many are written with no regard to quotes, a line for a row: quotes count for more than a field
    only in a file that can be read in no other way.
    """
    return _table(path, _parsed(path, "\t") if _has_long_fields(path) else _split(path), "\t")


def _table(path: Path, rows: Iterator[Fields], mark: str) -> Table:
    _, head, _ = next(rows, (0, None, ""))
    if not head:
        raise UsageError(f"{path} has no first line with the names of its columns")
    names = tuple(name.strip() or f"column {number}" for number, name in enumerate(head, 1))
    twice = [name for name, count in Counter(names).items() if count > 1]
    if twice:
        raise UsageError(f"{path} has more than one column {twice[0]!r}: {', '.join(names)}")
    return Table(names, lambda wanted: (_row(each, names, mark) for each in rows))


def _row(fields: Fields, names: Sequence[str], mark: str) -> TableRow:
    place, found, problem = fields
    if found is None:
        return TableRow(place, None, problem)
    if len(names) == 1:  # there is nothing to part: the marks are the text's own
        found = [mark.join(found)]
    if len(found) != len(names):
        counts = f"{len(found)} for {len(names)} columns: {mark.join(found)}"
        return TableRow(place, None, "the number of fields is not that of the columns", counts)
    return TableRow(place, dict(zip(names, found, strict=True)))


def _parsed(path: Path, mark: str) -> Iterator[Fields]:
    """The fields of each row, by the rules of quotes; blank lines are no rows."""
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
    """The next row; the limit on long fields is the whole process's, so it is put back."""
    before = csv.field_size_limit(LONGEST_FIELD)
    try:
        return next(reader)
    finally:
        csv.field_size_limit(before)


def _split(path: Path) -> Iterator[Fields]:
    for number, line in enumerate(lines(path), 1):
        if line.strip("\r\n"):
            yield number, [_unquoted(each) for each in line.rstrip("\r\n").split("\t")], ""


def _unquoted(field: str) -> str:
    quoted = _QUOTED.fullmatch(field)
    return quoted[1].replace('""', '"') if quoted else field


def _has_long_fields(path: Path) -> bool:
    """Whether lines differ in their tabs, but by the rules of quotes all rows are alike."""
    if len({line.count("\t") for line in lines(path) if line.strip("\r\n")}) < 2:
        return False
    return len({len(fields or ()) for _, fields, _ in _parsed(path, "\t")}) == 1
