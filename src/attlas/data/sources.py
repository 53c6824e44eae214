"""Sources of data: what a name, a file, the hub, a DataFrame or a list opens as, and its rows."""

import os
from collections.abc import Callable, Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, replace
from functools import partial
from glob import has_magic
from hashlib import sha256
from importlib import import_module
from pathlib import Path
from typing import Any

from attlas.data.example import Example
from attlas.data.files.delimited import comma_table, tab_table
from attlas.data.files.lines import exists, is_unreadable, unreadable
from attlas.data.files.places import (
    RemoteFile,
    ending_of,
    is_address,
    several_files,
    several_tables,
)
from attlas.data.files.raw_table import RawTable, TableRow, table_of
from attlas.data.files.records import (
    arrow_table,
    column_table,
    dataset_table,
    frame_table,
    is_dataset,
    is_table,
    json_lines_table,
    json_table,
    list_table,
    parquet_table,
)
from attlas.data.files.rows import Columns, UnusableRow, find_columns, read_row
from attlas.data.sampling import sample
from attlas.data.sets.hub import Hub, hub_installed, hub_rows
from attlas.data.texts_by_name import texts, texts_names
from attlas.errors import UsageError

ENDINGS = (".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".parquet", ".arrow", ".feather")
READERS: Mapping[str, Callable[[Any], RawTable]] = {
    ".csv": comma_table,
    ".tsv": tab_table,
    ".jsonl": json_lines_table,
    ".ndjson": json_lines_table,
    ".parquet": parquet_table,
    ".arrow": arrow_table,
    ".feather": arrow_table,
}


@dataclass(frozen=True)
class DataRow:
    """A row by its number from 0: an Example, or the reason why it makes none."""

    number: int
    example: Example | None
    problem: str = ""


@dataclass(frozen=True)
class DataRows:
    """Every row of some data, in their order, read anew and one by one whenever it is iterated.

    Unlike the examples of `read_examples`, repeated texts and rows that cannot be used are here.
    """

    source: str
    columns: Mapping[str, str]
    total: int
    fingerprint: str
    read: Callable[[], Iterator[DataRow]]
    chosen: frozenset[int] | None = None  # the numbers of those that were drawn

    def __len__(self) -> int:
        return self.total if self.chosen is None else len(self.chosen)

    def __iter__(self) -> Iterator[DataRow]:
        rows = self.read()
        return rows if self.chosen is None else (row for row in rows if row.number in self.chosen)


def read_rows(
    source: Any,
    *,
    text: str | None = None,
    pair: str | None = None,
    label: str | None = None,
    split: str | None = None,
    count: int | None = None,
    seed: int = 0,
) -> DataRows:
    """Look through data once, and read them row by row later; see `read_examples` for arguments."""
    asked = {"text": text, "pair": pair, "label": label, "spans": None}
    if isinstance(source, Iterator):
        raise UsageError(
            "an iterator can be read only once, so the work could not be resumed: give a file, a "
            "name, a DataFrame or a list; `attlas.explain` takes an iterator"
        )
    name, columns, read = _reader(source, asked, split, count, seed)
    digest, total, usable, problem = sha256(), 0, 0, "it is empty"
    for row in read():
        known = None if row.example is None else (row.example.text, row.example.label)
        digest.update(repr(known).encode(errors="surrogatepass"))
        total, usable = total + 1, usable + (row.example is not None)
        problem = row.problem or problem
    if not usable:
        raise UsageError(f"{name} has no usable row: {problem}")
    named = isinstance(source, (str, Path)) and is_named(str(source))
    drawn = None if count is None or named else frozenset(sample(range(total), count, seed))
    if drawn is not None:
        digest.update(repr(sorted(drawn)).encode())
    return DataRows(name, columns, total, digest.hexdigest(), read, drawn)


def _reader(
    source: Any, asked: Mapping[str, str | None], split: str | None, count: int | None, seed: int
) -> tuple[str, Mapping[str, str], Callable[[], Iterator[DataRow]]]:
    """What the data are called, which columns are read, and a function that reads the rows."""
    if isinstance(source, (str, Path)) and is_named(str(source)):
        refuse(f"{source} is a named set, whose columns are known", asked)
        examples = texts(str(source), split=split, count=count, seed=seed)
        return str(source), {}, partial(_known, examples)
    name, table = open_table(source, split)
    columns = columns_of(table, tuple(asked.values())).named()
    return name, columns if table.columns else {}, partial(_read, source, split, columns)


def _read(source: Any, split: str | None, columns: Mapping[str, str]) -> Iterator[DataRow]:
    rows = open_table(source, split)[1].rows(columns.values())
    return (_data_row(number, row, columns) for number, row in enumerate(rows))


def _known(examples: Iterable[Example]) -> Iterator[DataRow]:
    return (DataRow(number, each) for number, each in enumerate(examples))


def _data_row(number: int, row: TableRow, columns: Mapping[str, str]) -> DataRow:
    if row.content is None:
        return DataRow(number, None, row.problem)
    try:
        return DataRow(number, read_row(row.content, columns, row.place))
    except UnusableRow as problem:
        return DataRow(number, None, str(problem))


def columns_of(table: RawTable, asked: tuple[str | None, ...]) -> Columns:
    """The columns that are read: those asked for, and others by their usual names."""
    if not table.columns and not any(asked):  # only Examples, or nothing readable
        return Columns("text")
    return find_columns(table.columns, *asked)


def open_table(source: Any, split: str | None) -> tuple[str, RawTable]:
    """Open data of any kind but a set by name: what to call them, and the table."""
    if isinstance(source, (str, Path)):
        try:
            table = _open_path(str(source), split)
        except Exception as problem:
            if not is_unreadable(source, problem):
                raise
            raise unreadable(source, problem) from problem
        return str(source), replace(table, rows=partial(_read_on, source, table))
    if is_dataset(source):
        return "a Dataset", dataset_table(source, split)
    if split is not None:
        raise UsageError(f"split={split!r} is for data with splits, not for a list or a DataFrame")
    if isinstance(source, import_module("pandas").DataFrame):
        return "a DataFrame", frame_table(source)
    if is_table(source):
        return "a table", column_table(source)
    if isinstance(source, Iterable) and not isinstance(source, (Mapping, bytes)):
        return "a list", list_table(source)
    raise UsageError(
        f"data are a name, a file or a folder of files ({', '.join(ENDINGS)}), a DataFrame, "
        "a Dataset or a list, "
        f"not a value of type {type(source).__name__}"
    )


def _read_on(source: str | Path, table: RawTable, needed: Collection[str]) -> Iterator[TableRow]:
    """The rows of a file; whatever is wrong with it on the way is one clear error."""
    number = 0
    try:
        for row in table.rows(needed):
            number += 1
            yield row
    except Exception as problem:
        if not is_unreadable(source, problem):
            raise
        raise unreadable(f"{source}, after row {number},", problem) from problem


def _open_path(name: str, split: str | None) -> RawTable:
    if not name:
        raise UsageError("the data have no name: give a file, a folder (. is this one) or a set")
    files = several_files(name, ENDINGS, split)
    if files is not None:
        return several_tables(name, files, lambda file: _open_file(file, None))
    path = RemoteFile(name) if is_address(name) else Path(os.path.expanduser(name))
    if ending_of(name) in ENDINGS:
        return _open_file(path, split)
    if isinstance(path, RemoteFile) or exists(path):
        allowed = f"{', '.join(ENDINGS)}, the first five also with .gz"
        raise UsageError(f"{name} is a file of an unknown kind; allowed: {allowed}")
    if is_hub_id(name):
        return _open_hub(name, split)
    texts(name)  # raises the error that lists the known names
    raise UsageError(f"there is no data called {name}")


def is_hub_id(name: str) -> bool:
    """Whether this can only be a set of the hub."""
    ending = Path(name).suffix.lower()
    is_file = ending in (*ENDINGS, ".gz") or exists(Path(name)) or has_magic(name)
    return name.count("/") == 1 and not name.startswith((".", "/", "~")) and not is_file


def _open_file(path: Path | RemoteFile, split: str | None) -> RawTable:
    ending = ending_of(path)
    if isinstance(path, Path) and exists(path) and not path.is_file():  # a pipe is read forever
        raise UsageError(f"{path} cannot be read: it is no plain file")
    if ending == ".json":
        return json_table(path, split)
    if split is not None:
        raise UsageError(f"split={split!r}: {path} has no splits")
    return READERS[ending](path)


def _open_hub(name: str, split: str | None) -> RawTable:
    if not hub_installed():
        raise UsageError(
            f"{name} is no file, and `datasets` is not installed to ask the hub for it"
        )
    place, _, config = name.partition(":")
    rows = hub_rows(Hub(place, config or None), split or "test")
    return table_of(TableRow(number, row.record()) for number, row in enumerate(rows, 1))


def is_named(name: str) -> bool:
    """Whether this is a set that `attlas.texts` knows."""
    return name.lower().replace("-", "_") in texts_names()


def refuse(why: str, asked: Mapping[str, str | None]) -> None:
    """Refuse arguments that were given and have no meaning here."""
    for what, value in asked.items():
        if value is not None:
            raise UsageError(f"{what}={value!r}: {why}")
