"""Tables of records: JSON, JSON lines, Parquet, a DataFrame, a list."""

import json
from collections.abc import Collection, Iterable, Iterator, Mapping
from pathlib import Path
from typing import TYPE_CHECKING, Any

from attlas.data.example import Example
from attlas.data.files.lines import lines
from attlas.data.files.table import Table, TableRow, table_of
from attlas.data.sets.reading import choose_split
from attlas.errors import UsageError

if TYPE_CHECKING:
    import pandas as pd

NOT_JSON = "not JSON"


def json_lines_table(path: Path) -> Table:
    """A record, or a lone text, in each line."""
    return table_of(_json_lines(path))


def _json_lines(path: Path) -> Iterator[TableRow]:
    for number, line in enumerate(lines(path), 1):
        if line.strip():
            try:
                yield _as_row(number, json.loads(line))
            except (ValueError, RecursionError):
                yield TableRow(number, None, NOT_JSON, line)


def json_table(path: Path, split: str | None) -> Table:
    """A list of records, columns by name, or splits by name; JSON lines are taken too."""
    try:
        found = json.loads("".join(lines(path)))
    except (ValueError, RecursionError) as error:
        first = next(_json_lines(path), None)
        if first is not None and first.content is not None:
            return json_lines_table(path)
        raise UsageError(f"{path} is not JSON: {error}") from error
    return table_of(_as_row(n, each) for n, each in enumerate(_items(path, found, split), 1))


def _items(path: Path, found: Any, split: str | None) -> Iterable[Any]:
    if isinstance(found, dict) and found and all(map(_is_list_of_records, found.values())):
        return list(found[choose_split(str(path), split, list(found))])
    if split is not None:
        raise UsageError(f"split={split!r}: {path} has no splits")
    if isinstance(found, list):
        return found
    if isinstance(found, dict):
        return _records(path, found)
    raise UsageError(f"{path} holds {_kind(found)}: a list of records is wanted")


def _records(path: Path, found: dict[str, Any]) -> list[dict[str, Any]]:
    """Columns by name, as lists or with a name for each row, or else one record."""
    values = list(found.values())
    if values and all(isinstance(each, dict) for each in values):  # as pandas writes it
        return [{name: found[name].get(row) for name in found} for row in values[0]]
    if not values or not all(isinstance(each, list) for each in values):
        return [found]
    if len({len(each) for each in values}) > 1:
        raise UsageError(f"the columns of {path} are not of one length")
    return [dict(zip(found, row, strict=True)) for row in zip(*values, strict=True)]


def _is_list_of_records(value: Any) -> bool:
    return isinstance(value, list) and all(isinstance(each, dict) for each in value)


def _as_row(place: int, value: Any) -> TableRow:
    if isinstance(value, dict):
        return TableRow(place, value)
    if isinstance(value, str):
        return TableRow(place, {"text": value})
    return TableRow(place, None, f"a record is an object or a text, not {_kind(value)}", str(value))


def parquet_table(path: Path) -> Table:
    """A Parquet file, of which only the wanted columns are read."""
    from pyarrow import ArrowException, parquet

    try:
        file = parquet.ParquetFile(path)
    except (OSError, ArrowException) as error:
        raise UsageError(f"{path} cannot be read as Parquet: {error}") from error

    def rows(wanted: Collection[str]) -> Iterator[TableRow]:
        number = 0
        try:
            for batch in file.iter_batches(columns=list(wanted)):
                for record in batch.to_pylist():
                    number += 1
                    yield TableRow(number, record)
        except (OSError, ArrowException) as error:
            raise UsageError(f"{path} cannot be read after row {number}: {error}") from error

    return Table(tuple(file.schema_arrow.names), rows)


def frame_table(frame: "pd.DataFrame") -> Table:
    """A DataFrame; what pandas holds for missing is missing here."""
    names = tuple(map(str, frame.columns))
    if len(set(names)) < len(names):
        raise UsageError(f"the DataFrame has columns of the same name: {', '.join(names)}")

    def rows(wanted: Collection[str]) -> Iterator[TableRow]:
        kept = [name for name in names if name in wanted]
        part = frame.iloc[:, [names.index(name) for name in kept]].astype(object)
        part = part.where(part.notna(), None)
        for place, *values in part.itertuples(name=None):
            known = place if isinstance(place, int) else str(place)
            yield TableRow(known, dict(zip(kept, values, strict=True)))

    return Table(names, rows)


def list_table(items: Iterable[Any]) -> Table:
    """Texts, pairs (text, label), Examples or records, in any mixture."""
    return table_of(_item(place, item) for place, item in enumerate(items))


def _item(place: int, item: Any) -> TableRow:
    if isinstance(item, Example):
        return TableRow(place, item)
    if isinstance(item, Mapping):
        return TableRow(place, dict(item))
    if isinstance(item, (tuple, list)) and len(item) == 2:
        return TableRow(place, {"text": item[0], "label": item[1]})
    if item is None or isinstance(item, (str, int, float)):
        return TableRow(place, {"text": item})
    allowed = "a text, (text, label), an Example or a record is wanted"
    return TableRow(place, None, f"{allowed}, not {_kind(item)}", str(item))


def _kind(value: Any) -> str:
    return f"a value of type {type(value).__name__}"
