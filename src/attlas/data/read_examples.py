"""read_examples: the one way to read data of any kind as Examples.

Every verb that takes data calls it, with the arguments of the same names.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b, sha256
from importlib import import_module
from pathlib import Path
from typing import Any

from attlas.data.example import Example
from attlas.data.files.delimited import comma_table, tab_table
from attlas.data.files.raw_table import RawTable, TableRow, table_of
from attlas.data.files.records import (
    dataset_table,
    frame_table,
    is_dataset,
    json_lines_table,
    json_table,
    list_table,
    parquet_table,
)
from attlas.data.files.rows import Columns, UnusableRow, find_columns, read_row
from attlas.data.sampling import sample_and_total
from attlas.data.sets.hub import Hub, hub_installed, hub_rows
from attlas.data.texts_by_name import check_split, texts, texts_and_total, texts_names
from attlas.errors import UsageError

SHOWN = 60
ENDINGS = (".csv", ".tsv", ".json", ".jsonl", ".ndjson", ".parquet")
UNLABELLED = "no label, though others have one"


@dataclass(frozen=True)
class LeftOut:
    """A row that was not used: its place, the reason, and its beginning."""

    row: int | str
    reason: str
    shown: str = ""


@dataclass(frozen=True)
class ReadData:
    """Examples, the rows that were left out, and the columns that were read.

    Every verb that takes data takes this too. `total` is the number of usable rows that the
    examples were drawn from; None if there is no end of them.
    """

    examples: list[Example]
    left_out: list[LeftOut]
    source: str
    columns: Mapping[str, str] = field(default_factory=dict)
    total: int | None = None

    def notes(self) -> tuple[str, ...]:
        """Say which columns were read, and how many rows were left out, and why."""
        read = ", ".join(f"{what} from {column!r}" for what, column in self.columns.items())
        return (*([read] if read else []), *self.notes_on_left_out())

    def notes_on_left_out(self) -> tuple[str, ...]:
        """Say how many rows were left out, and why."""
        counts = Counter(each.reason for each in self.left_out)
        return tuple(f"{count} left out: {reason}" for reason, count in counts.most_common())

    @property
    def fingerprint(self) -> str:
        """A digest of the examples in their order, the same only for the same data."""
        total = sha256()
        for each in self.examples:
            known = (each.text, each.label, each.spans, each.fields.get("cluster"))
            total.update(repr(known).encode())
        return total.hexdigest()

    def labelled(self, verb: str) -> "ReadData":
        """Leave out the examples without a label; an error if none has one."""
        missing = [each for each in self.examples if each.label is None]
        if missing and len(missing) == len(self.examples):
            raise UsageError(
                f"{verb} needs labelled texts, and {self.source} has no labels: "
                "name their column with label=, or give pairs (text, label)"
            )
        left_out = [
            LeftOut(each.fields.get("row", ""), UNLABELLED, _short(str(each.text)))
            for each in missing
        ]
        kept = [each for each in self.examples if each.label is not None]
        return replace(self, examples=kept, left_out=[*self.left_out, *left_out])


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
) -> ReadData:
    """Read Examples from a name, a file, the hub, a DataFrame, a Dataset or a list.

    A name is one that `attlas.texts` knows; a set on the hub is `owner/name` or
    `owner/name:config`. A list holds texts, pairs (text, label), Examples or records (dicts).

    `text`, `pair` (a second text), `label` and `spans` are columns; the first three are found by
    their usual names if none of them is given. Labels may be missing. `split` chooses a split of a
    named set, a set on the hub, a `.json` file with splits or a DatasetDict. `count` draws a sample
    of the usable rows by the `seed`, and keeps their order. A repeated text is left out.
    """
    asked = {"text": text, "pair": pair, "label": label, "spans": spans}
    if isinstance(source, ReadData):
        _refuse(f"{source.source} was read already", {**asked, "split": split})
        examples, total = sample_and_total(source.examples, count, seed)
        return replace(source, examples=examples, total=total)
    if isinstance(source, (str, Path)) and _is_named(str(source)):
        _refuse(f"{source} is a named set, whose columns are known", asked)
        read = texts_and_total(str(source), split, count, seed)
        return ReadData(read[0], [], str(source), total=read[1])
    name, table = _open(source, split)
    columns = _columns(table, tuple(asked.values())).named()
    left_out: list[LeftOut] = []
    usable = _usable(table.rows(columns.values()), columns, left_out)
    examples, total = sample_and_total(usable, count, seed)
    if not examples and count != 0:
        raise UsageError(_nothing_usable(name, left_out))
    return ReadData(examples, left_out, name, columns if table.columns else {}, total)


def check_data(
    source: str | Path,
    *,
    text: str | None = None,
    pair: str | None = None,
    label: str | None = None,
    spans: str | None = None,
    split: str | None = None,
) -> None:
    """Refuse a name or a file that is not there, or a split or columns that it does not have.

    No rows are read, and nothing is fetched from the hub.
    """
    asked = {"text": text, "pair": pair, "label": label, "spans": spans}
    if _is_named(str(source)):
        _refuse(f"{source} is a named set, whose columns are known", asked)
        check_split(str(source), split)
    elif not _is_hub_id(str(source)):
        _, table = _open(source, split)
        _columns(table, tuple(asked.values()))


def _columns(table: RawTable, asked: tuple[str | None, ...]) -> Columns:
    if not table.columns and not any(asked):  # only Examples, or nothing readable
        return Columns("text")
    return find_columns(table.columns, *asked)


def _usable(
    rows: Iterable[TableRow], columns: Mapping[str, str], left_out: list[LeftOut]
) -> Iterator[Example]:
    """Yield an Example for each usable row, and add the other rows to `left_out`."""
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


def _open(source: Any, split: str | None) -> tuple[str, RawTable]:
    if isinstance(source, (str, Path)):
        return str(source), _open_path(str(source), split)
    if is_dataset(source):
        return "a Dataset", dataset_table(source, split)
    if split is not None:
        raise UsageError(f"split={split!r} is for data with splits, not for a list or a DataFrame")
    if isinstance(source, import_module("pandas").DataFrame):
        return "a DataFrame", frame_table(source)
    if isinstance(source, Iterable) and not isinstance(source, (Mapping, bytes)):
        return "a list", list_table(source)
    raise UsageError(
        f"data are a name, a file ({', '.join(ENDINGS)}), a DataFrame, a Dataset or a list, "
        f"not a value of type {type(source).__name__}"
    )


def _open_path(name: str, split: str | None) -> RawTable:
    path = Path(name).expanduser()
    ending = Path(path.stem).suffix if path.suffix.lower() == ".gz" else path.suffix
    ending = ending.lower()
    if ending in ENDINGS:
        return _open_file(path, ending, split)
    if path.exists():
        kind = "a folder: give a file in it" if path.is_dir() else "a file of an unknown kind"
        allowed = f"{', '.join(ENDINGS)}, each but .parquet also with .gz"
        raise UsageError(f"{name} is {kind}; allowed: {allowed}")
    if _is_hub_id(name):
        return _open_hub(name, split)
    texts(name)  # raises the error that lists the known names
    raise UsageError(f"there is no data called {name}")


def _is_hub_id(name: str) -> bool:
    ending = Path(name).suffix.lower()
    is_file = ending in (*ENDINGS, ".gz") or Path(name).expanduser().exists()
    return name.count("/") == 1 and not name.startswith((".", "/", "~")) and not is_file


def _open_file(path: Path, ending: str, split: str | None) -> RawTable:
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


def _open_hub(name: str, split: str | None) -> RawTable:
    if not hub_installed():
        raise UsageError(
            f"{name} is no file, and `datasets` is not installed to ask the hub for it"
        )
    place, _, config = name.partition(":")
    rows = hub_rows(Hub(place, config or None), split or "test")
    return table_of(TableRow(number, row.record()) for number, row in enumerate(rows, 1))


def _is_named(name: str) -> bool:
    return name.lower().replace("-", "_") in texts_names()


def _refuse(why: str, asked: Mapping[str, str | None]) -> None:
    for what, value in asked.items():
        if value is not None:
            raise UsageError(f"{what}={value!r}: {why}")


def _nothing_usable(name: str, left_out: Collection[LeftOut]) -> str:
    if not left_out:
        return f"{name} has no rows"
    counts = Counter(each.reason for each in left_out)
    reasons = "; ".join(f"{count} × {reason}" for reason, count in counts.most_common(3))
    first = next(iter(left_out))
    return f"{name} has no usable row: {reasons} (first row {first.row}: {first.shown!r})"


def _short(shown: str) -> str:
    line = " ".join(shown.split()).encode(errors="backslashreplace").decode()
    return line if len(line) <= SHOWN else line[: SHOWN - 1] + "…"
