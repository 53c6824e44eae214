"""read_examples: the one way to read data of any kind as Examples.

Every verb that takes data calls it, with the arguments of the same names.
"""

from collections import Counter
from collections.abc import Collection, Iterable, Iterator, Mapping
from dataclasses import dataclass, field, replace
from hashlib import blake2b, sha256
from pathlib import Path
from typing import Any

from attlas.data.example import Example
from attlas.data.files.raw_table import TableRow
from attlas.data.files.rows import UnusableRow, read_row
from attlas.data.sampling import sample_and_total
from attlas.data.sources import columns_of, is_hub_id, is_named, open_table, refuse
from attlas.data.texts_by_name import check_split, texts_and_total
from attlas.errors import UsageError

SHOWN = 60
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
        refuse(f"{source.source} was read already", {**asked, "split": split})
        examples, total = sample_and_total(source.examples, count, seed)
        return replace(source, examples=examples, total=total)
    if isinstance(source, (str, Path)) and is_named(str(source)):
        refuse(f"{source} is a named set, whose columns are known", asked)
        read = texts_and_total(str(source), split, count, seed)
        return ReadData(read[0], [], str(source), total=read[1])
    name, table = open_table(source, split)
    columns = columns_of(table, tuple(asked.values())).named()
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
    if is_named(str(source)):
        refuse(f"{source} is a named set, whose columns are known", asked)
        check_split(str(source), split)
    elif not is_hub_id(str(source)):
        _, table = open_table(source, split)
        columns_of(table, tuple(asked.values()))


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
