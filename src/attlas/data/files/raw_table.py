"""RawTable: rows with named columns, from a file or from memory, read one by one."""

from collections import Counter
from collections.abc import Callable, Collection, Iterable, Iterator, Sequence
from dataclasses import dataclass
from itertools import chain, islice

from attlas.data.example import Example, Record
from attlas.errors import UsageError, in_short

PEEKED = 100  # rows searched for column names, where there is no header


@dataclass(frozen=True)
class TableRow:
    """One row: its content, or the reason why it cannot be read.

    `place` is the line of a text file, the number of a record from 1, the index of a DataFrame or
    the position in a list from 0.
    """

    place: int | str
    content: Record | Example | None
    problem: str = ""
    shown: str = ""  # the beginning of a row that cannot be read


def named_once(source: object, names: Sequence[str]) -> tuple[str, ...]:
    """The names of columns; an error if two columns have one name."""
    repeated = [name for name, count in Counter(names).items() if count > 1]
    if repeated:
        shown = f"{in_short(repeated[0])!r}: {', '.join(names)}"
        raise UsageError(f"{source} has more than one column {shown}")
    return tuple(names)


@dataclass(frozen=True)
class RawTable:
    """The names of all columns, and a function that reads the rows, given the columns needed.

    The rows can be read only once.
    """

    columns: tuple[str, ...]
    rows: Callable[[Collection[str]], Iterator[TableRow]]


def table_of(rows: Iterable[TableRow]) -> RawTable:
    """Make a table whose column names come from its first rows."""
    iterator = iter(rows)
    first = list(islice(iterator, PEEKED))
    names = dict.fromkeys(
        name for row in first if isinstance(row.content, dict) for name in row.content
    )
    return RawTable(tuple(names), lambda needed: chain(first, iterator))
