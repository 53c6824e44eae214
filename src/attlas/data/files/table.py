"""Table: rows with named columns, wherever they come from, read one by one."""

from collections.abc import Callable, Collection, Iterable, Iterator
from dataclasses import dataclass
from itertools import chain, islice

from attlas.data.example import Example
from attlas.data.sets.rows import Record

PEEKED = 100  # rows that are looked at for their columns, where there is no header


@dataclass(frozen=True)
class TableRow:
    """One row: what it holds, or why it cannot be read.

    `place` is the line of a text file, the number of a record from 1, the index of a DataFrame or
    the place in a list from 0.
    """

    place: int | str
    content: Record | Example | None
    problem: str = ""
    shown: str = ""  # of a row that cannot be read, its beginning


@dataclass(frozen=True)
class Table:
    """The columns there are, and the rows with those that are wanted; rows are read once."""

    columns: tuple[str, ...]
    rows: Callable[[Collection[str]], Iterator[TableRow]]


def table_of(rows: Iterable[TableRow]) -> Table:
    """A table whose columns are those of its first rows."""
    iterator = iter(rows)
    first = list(islice(iterator, PEEKED))
    names = dict.fromkeys(
        name for row in first if isinstance(row.content, dict) for name in row.content
    )
    return Table(tuple(names), lambda wanted: chain(first, iterator))
