"""read_examples: any table, list or named set as Examples, and the rows that cannot be used."""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field
from hashlib import blake2b, sha256
from importlib import import_module
from pathlib import Path
from typing import Any

from attlas.data.example import Example
from attlas.data.files.cells import UnusableRow, read_row
from attlas.data.files.columns import Columns, find_columns
from attlas.data.files.delimited import comma_table, tab_table
from attlas.data.files.records import (
    frame_table,
    json_lines_table,
    json_table,
    list_table,
    parquet_table,
)
from attlas.data.files.table import Table, TableRow, table_of
from attlas.data.sets.hub import Hub, hub_installed, hub_rows
from attlas.data.sets.rows import sample
from attlas.data.texts import texts, texts_names
from attlas.errors import UsageError

SHOWN = 60
ENDINGS = (".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".parquet")


@dataclass(frozen=True)
class LeftOut:
    """A row that could not be used: where it stands, why, and how it begins."""

    row: int | str
    reason: str
    shown: str = ""


@dataclass(frozen=True)
class Read:
    """Examples, the rows that make none, and which columns were read as what."""

    examples: list[Example]
    left_out: list[LeftOut]
    source: str
    columns: Mapping[str, str] = field(default_factory=dict)

    def notes(self) -> tuple[str, ...]:
        """What a reader must know: the columns, and how many rows were left out, and why."""
        read = ", ".join(f"{what} from {column!r}" for what, column in self.columns.items())
        counts = Counter(each.reason for each in self.left_out)
        reasons = (f"{count} left out: {reason}" for reason, count in counts.most_common())
        return (*([read] if read else []), *reasons)

    @property
    def fingerprint(self) -> str:
        """A digest of the examples in their order: equal for equal data alone."""
        total = sha256()
        for each in self.examples:
            known = (each.text, each.label, each.spans, each.fields.get("cluster"))
            total.update(repr(known).encode())
        return total.hexdigest()


def read_examples(
    source: Any,
    *,
    text: str | None = None,
    pair: str | None = None,
    label: str | None = None,
    spans: str | None = None,
    split: str | None = None,
    count: int | None = None,
    seed: int = 0,
) -> Read:
    """Examples from a file, a set of `attlas.texts`, the hub, a DataFrame or a list.

    `text`, `pair` (a second text), `label` and `spans` are columns; the first three are found by
    their usual names where none of them says otherwise. Labels may be missing. `count` takes a
    sample of the rows that can be used, which `seed` decides, in their order. A text that was
    there before is left out. A set on the hub is `owner/name` or `owner/name:part`.
    """
    if isinstance(source, (str, Path)) and _is_named(str(source)):
        _refuse_columns(str(source), {"text": text, "pair": pair, "label": label, "spans": spans})
        return Read(texts(str(source), split=split, count=count, seed=seed), [], str(source))
    name, table = _open(source, split)
    columns = _columns(table, (text, pair, label, spans)).named()
    left_out: list[LeftOut] = []
    usable = _usable(table.rows(columns.values()), columns, left_out)
    examples = sample(usable, count, seed)
    if not examples and count != 0:
        raise UsageError(_nothing(name, left_out))
    return Read(examples, left_out, name, columns if table.columns else {})


def _columns(table: Table, asked: tuple[str | None, ...]) -> Columns:
    if not table.columns and not any(asked):  # Examples alone, or nothing that could be read
        return Columns("text")
    return find_columns(table.columns, *asked)


def _usable(
    rows: Iterable[TableRow], columns: Mapping[str, str], left_out: list[LeftOut]
) -> Iterator[Example]:
    """The Examples one by one; the other rows are put into `left_out` on the way."""
    seen: set[bytes] = set()
    for row in rows:
        try:
            if row.content is None:
                raise UnusableRow(row.problem, row.shown)
            example = read_row(row.content, columns, row.place)
            digest = blake2b(repr(example.text).encode(), digest_size=16).digest()
            if digest in seen:
                raise UnusableRow("the text was there before", example.text)
        except UnusableRow as error:
            left_out.append(LeftOut(row.place, str(error), _short(error.shown)))
        else:
            seen.add(digest)
            yield example


def _open(source: Any, split: str | None) -> tuple[str, Table]:
    if isinstance(source, (str, Path)):
        return str(source), _open_name(str(source), split)
    if split is not None:
        raise UsageError(f"split={split!r} is for data by name or file, not for data in memory")
    if isinstance(source, import_module("pandas").DataFrame):
        return "a DataFrame", frame_table(source)
    if isinstance(source, Iterable) and not isinstance(source, (Mapping, bytes)):
        return "a list", list_table(source)
    raise UsageError(
        f"data are a file ({', '.join(ENDINGS)}), a name, a DataFrame or a list, "
        f"not {type(source).__name__}"
    )


def _open_name(name: str, split: str | None) -> Table:
    path = Path(name).expanduser()
    ending = Path(path.stem).suffix if path.suffix.lower() == ".gz" else path.suffix
    ending = ending.lower()
    if ending in ENDINGS:
        return _open_file(path, ending, split)
    if path.exists():
        kind = "a folder: give a file in it" if path.is_dir() else "a file of no known kind"
        raise UsageError(f"{name} is {kind}; allowed: {', '.join(ENDINGS)}, but for .parquet + .gz")
    if name.count("/") == 1 and not name.startswith((".", "/", "~")):
        return _open_hub(name, split)
    texts(name)  # which says what names there are
    raise UsageError(f"there is no data called {name}")


def _open_file(path: Path, ending: str, split: str | None) -> Table:
    if ending == ".json":
        return json_table(path, split)
    if split is not None:
        raise UsageError(f"split={split!r}: {path} has no splits")
    readers = {
        ".csv": comma_table,
        ".tsv": tab_table,
        ".jsonl": json_lines_table,
        ".ndjson": json_lines_table,
        ".parquet": parquet_table,
    }
    return readers[ending](path)


def _open_hub(name: str, split: str | None) -> Table:
    if not hub_installed():
        raise UsageError(
            f"{name} is no file, and `datasets` is not installed to ask the hub for it"
        )
    place, _, part = name.partition(":")
    found = hub_rows(Hub(place, part or None), split or "test")
    return table_of(TableRow(number, row.record()) for number, row in enumerate(found, 1))


def _is_named(name: str) -> bool:
    return name.lower().replace("-", "_") in texts_names()


def _refuse_columns(name: str, asked: Mapping[str, str | None]) -> None:
    for what, column in asked.items():
        if column is not None:
            raise UsageError(f"{what}={column!r}: {name} is a named set, whose columns are known")


def _nothing(name: str, left_out: Collection[LeftOut]) -> str:
    if not left_out:
        return f"{name} has no rows"
    counts = Counter(each.reason for each in left_out)
    reasons = "; ".join(f"{count} × {reason}" for reason, count in counts.most_common(3))
    first = next(iter(left_out))
    return f"{name} has no row that can be used: {reasons} (first row {first.row}: {first.shown!r})"


def _short(shown: str) -> str:
    line = " ".join(shown.split()).encode(errors="backslashreplace").decode()
    return line if len(line) <= SHOWN else line[: SHOWN - 1] + "…"
