"""Tables of records: JSON, JSON lines, Parquet, a DataFrame, a Dataset, a list."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from attlas.data.conversations import is_conversation
from attlas.data.example import Example
from attlas.data.files.lines import lines
from attlas.data.files.places import RemoteFile
from attlas.data.files.raw_table import RawTable, TableRow, named_once, table_of
from attlas.data.sampling import choose_split
from attlas.errors import UsageError, first_line

NOT_JSON = "not JSON"


def json_lines_table(path: Path | RemoteFile) -> RawTable:
    """Read a record, or a bare text, from each line."""
    return table_of(_json_lines(path))


def _json_lines(path: Path | RemoteFile) -> Iterator[TableRow]:
    for number, line in enumerate(lines(path), 1):
        if line.strip():
            try:
                yield _as_row(number, json.loads(line))
            except (ValueError, RecursionError):
                yield TableRow(number, None, NOT_JSON, line)


def json_table(path: Path | RemoteFile, split: str | None) -> RawTable:
    """Read a list of records, columns by name, or splits by name; JSON lines are read too."""
    try:
        content = json.loads("".join(lines(path)))
    except (ValueError, RecursionError) as error:
        first = next(_json_lines(path), None)
        if first is not None and first.content is not None:
            return json_lines_table(path)
        raise UsageError(f"{path} is not JSON: {first_line(error)}") from error
    return table_of(_as_row(n, each) for n, each in enumerate(_items(path, content, split), 1))


def _items(path: Path | RemoteFile, content: Any, split: str | None) -> Iterable[Any]:
    if is_conversation(content):
        return [content]
    if isinstance(content, dict) and content and all(map(_is_list_of_records, content.values())):
        return list(content[choose_split(str(path), split, list(content))])
    if split is not None:
        raise UsageError(f"split={split!r}: {path} has no splits")
    if isinstance(content, list):
        return content
    if isinstance(content, dict):
        return _records(path, content)
    raise UsageError(f"{path} holds {_kind(content)}, not a list of records")


def _records(path: Path | RemoteFile, content: dict[str, Any]) -> list[dict[str, Any]]:
    """Turn columns into records; what holds no columns is one record itself."""
    values = list(content.values())
    if values and all(isinstance(each, dict) for each in values):  # as pandas writes it
        return [{name: content[name].get(row) for name in content} for row in values[0]]
    if not values or not all(isinstance(each, list) for each in values):
        return [content]
    if len({len(each) for each in values}) > 1:
        raise UsageError(f"the columns of {path} differ in length")
    return [dict(zip(content, row, strict=True)) for row in zip(*values, strict=True)]


def _is_list_of_records(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, dict) for each in value)


def _as_row(place: int, value: Any) -> TableRow:
    if isinstance(value, dict):
        return TableRow(place, value)
    if isinstance(value, str):
        return TableRow(place, {"text": value})
    if is_conversation(value):
        return TableRow(place, {"messages": value})
    return TableRow(place, None, f"a record is an object or a text, not {_kind(value)}", str(value))


_BATCH = 4096  # rows of a table that are taken out of it at once


def parquet_table(path: Path | RemoteFile) -> RawTable:
    """Read a Parquet file, only the columns needed."""
    from pyarrow import ArrowException

    try:
        with _parquet_file(path) as file:
            names = file.schema_arrow.names
    except (OSError, ArrowException) as error:
        reason = f"cannot be read as Parquet: {first_line(error)}"
        raise UsageError(f"{path} {reason}") from error

    def rows(needed: Collection[str]) -> Iterator[TableRow]:
        number = 0
        with _parquet_file(path) as file:
            for batch in file.iter_batches(columns=list(needed)):
                for record in _records_of(batch):
                    number += 1
                    yield TableRow(number, *record)

    return RawTable(named_once(path, names), rows)


@contextmanager
def _parquet_file(path: Path | RemoteFile) -> Iterator[Any]:
    from pyarrow import OSFile, parquet

    # Given its name, Arrow would take one with a colon for an address.
    opened = path.open() if isinstance(path, RemoteFile) else OSFile(str(path))
    with opened as source, parquet.ParquetFile(source) as file:
        yield file


def arrow_table(path: Any) -> RawTable:
    """Read an Arrow file or stream, batch by batch."""
    from pyarrow import ArrowException

    try:
        schema = next(_arrow_batches(path)).names
    except (OSError, ArrowException) as error:
        raise UsageError(f"{path} cannot be read as Arrow: {first_line(error)}") from error

    def rows(needed: Collection[str]) -> Iterator[TableRow]:
        number, batches = 0, _arrow_batches(path)
        next(batches)
        for batch in batches:
            batch.validate(full=True)  # damaged places would be read beyond the end of the memory
            for record in _records_of(batch.select(list(needed))):
                number += 1
                yield TableRow(number, *record)

    return RawTable(named_once(path, schema), rows)


def _arrow_batches(path: Any) -> Iterator[Any]:
    """The schema, then the batches."""
    from pyarrow import ArrowInvalid, ipc

    with path.open("rb") as stream:
        try:
            file = ipc.open_file(stream)
        except ArrowInvalid:  # not a file: a stream, as the `datasets` library writes it
            stream.seek(0)
            opened = ipc.open_stream(stream)
            yield opened.schema
            yield from opened
            return
        yield file.schema
        for number in range(file.num_record_batches):
            yield file.get_batch(number)


def _records_of(batch: Any) -> Iterator[tuple[dict[str, Any] | None, str]]:
    """The rows of a batch; where one cannot be read (bad UTF-8, a date beyond all years), why."""
    try:
        yield from ((record, "") for record in batch.to_pylist())
        return
    except (ValueError, ArithmeticError):
        each = [batch.slice(number, 1) for number in range(batch.num_rows)]
    for row in each:
        try:
            yield row.to_pylist()[0], ""
        except (ValueError, ArithmeticError) as problem:
            yield None, f"not readable as text: {first_line(problem)}"


def frame_table(frame: Any) -> RawTable:
    """Read a DataFrame; a value that pandas counts as missing is missing here too."""
    names = named_once("the DataFrame", [str(each) for each in frame.columns])

    def rows(needed: Collection[str]) -> Iterator[TableRow]:
        kept = [name for name in names if name in needed]
        columns = frame.iloc[:, [names.index(name) for name in kept]].astype(object)
        columns = columns.where(columns.notna(), None)
        for place, *values in columns.itertuples(name=None):
            known = place if isinstance(place, int) else str(place)
            yield TableRow(known, dict(zip(kept, values, strict=True)))

    return RawTable(names, rows)


def is_dataset(source: Any) -> bool:
    """Whether this is a Dataset or DatasetDict of the `datasets` library, installed or not."""
    return hasattr(source, "column_names") and isinstance(source, Iterable)


def is_table(source: Any) -> bool:
    """Whether this is a table that Arrow can take over: of Polars, of DuckDB, or its own."""
    has_columns = hasattr(source, "columns") and not isinstance(source, type)
    return has_columns and hasattr(source, "__arrow_c_stream__")


def column_table(source: Any) -> RawTable:
    """Read such a table, only the columns needed."""
    import pyarrow

    table = pyarrow.table(source)

    def rows(needed: Collection[str]) -> Iterator[TableRow]:
        number = 0
        for batch in table.select(list(needed)).to_batches(max_chunksize=_BATCH):
            for record in _records_of(batch):
                number += 1
                yield TableRow(number, *record)

    return RawTable(named_once("the table", table.column_names), rows)


def dataset_table(dataset: Any, split: str | None) -> RawTable:
    """Read a Dataset, or a split of a DatasetDict."""
    if isinstance(dataset, Mapping):
        dataset = dataset[_original_split(list(dataset), split)]
    elif split is not None:
        raise UsageError(f"split={split!r}: a Dataset has no splits, a DatasetDict has")
    return table_of(TableRow(number, dict(record)) for number, record in enumerate(dataset, 1))


def _original_split(available: list[str], split: str | None) -> str:
    """Choose a split by our names or by those of the library, whose dev is `validation`."""
    ours = {"dev" if name == "validation" else name.replace("-", "_"): name for name in available}
    our_name = "dev" if split == "validation" else split
    return ours[choose_split("the DatasetDict", our_name, list(ours))]


def list_table(items: Iterable[Any]) -> RawTable:
    """Read texts, pairs (text, label), Examples, records or conversations, in any mixture."""
    listed = [items] if is_conversation(items) else items
    return table_of(_item(place, item) for place, item in enumerate(listed))


def _item(place: int, item: Any) -> TableRow:
    if isinstance(item, Example):
        return TableRow(place, item)
    if is_conversation(item):
        return TableRow(place, dict(item) if isinstance(item, Mapping) else {"messages": item})
    if isinstance(item, Mapping):
        return TableRow(place, dict(item))
    if isinstance(item, (tuple, list)) and len(item) == 2:  # a text and its label
        return TableRow(place, {"text": item[0], "label": item[1]})
    if item is None or isinstance(item, (str, int, float)):
        return TableRow(place, {"text": item})
    allowed = "a text, a pair (text, label), an Example, a record or a conversation"
    return TableRow(place, None, f"an item is {allowed}, not {_kind(item)}", str(item))


def _kind(value: Any) -> str:
    return f"a value of type {type(value).__name__}"
