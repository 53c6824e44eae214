"""A table of scores in the making: parts beside the file, each there whole or not at all."""

import json
import os
from collections.abc import Iterator, Mapping
from contextlib import ExitStack, suppress
from pathlib import Path
from types import TracebackType
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from attlas.data.sources import DataRow
from attlas.errors import ResultFileError, UsageError
from attlas.explaining.score_places import ENDING, MANIFEST, place_of, stopped_note
from attlas.results import Explanation
from attlas.results.support.files import digest_of, plain
from attlas.results.support.tables import (
    DETAILS,
    difference,
    is_sealed,
    metadata_with,
    pack_table,
    seal,
    unpack_bytes,
)

FORMAT = 1  # of the columns: it goes up when one is renamed, removed or changes its meaning
ROW_GROUP = 2**25  # bytes of parts, as they are in memory, that the file holds as one group of rows
_NOT_OURS = (*(OSError, pa.ArrowException, LookupError, TypeError, ValueError, RecursionError),)

SCHEMA = pa.schema(
    {
        "row": pa.int64(),
        "text": pa.string(),
        "pair": pa.string(),
        "true_label": pa.string(),
        "predicted": pa.string(),
        "probability": pa.float64(),
        "target": pa.string(),
        "position": pa.int32(),
        "quantity": pa.string(),
        "value": pa.float64(),
        "tokens": pa.list_(pa.string()),
        "scores": pa.list_(pa.float32()),
        "special": pa.list_(pa.bool_()),
        "segments": pa.list_(pa.string()),
        "starts": pa.list_(pa.int32()),
        "ends": pa.list_(pa.int32()),
        "warning": pa.string(),
        "notes": pa.list_(pa.string()),
        "licence": pa.string(),
        "problem": pa.string(),
    }
)


def score_row(row: DataRow, outcome: Explanation | str) -> dict[str, Any]:
    """What the file says of a row; columns that are not here are empty."""
    record: dict[str, Any] = {"row": row.number}
    if row.example is not None:
        text = row.example.text
        first, second = text if isinstance(text, tuple) else (text, None)
        plain_first = first if isinstance(first, str) else json.dumps(first, ensure_ascii=False)
        record |= {"text": plain_first, "pair": second, "true_label": row.example.label}
    if isinstance(outcome, str):
        return {**record, "problem": outcome}
    spans = outcome.tokens.offsets
    best = outcome.prediction[0] if outcome.prediction else {}
    return {
        **record,
        "predicted": best.get("label"),
        "probability": best.get("probability"),
        "target": outcome.target.name,
        "position": outcome.target.position,
        "quantity": outcome.target.quantity,
        "value": outcome.target.value,
        "tokens": outcome.tokens.texts,
        "scores": outcome.scores,
        "special": outcome.tokens.special,
        "segments": outcome.tokens.segments,
        "starts": [span and span[0] for span in spans],
        "ends": [span and span[1] for span in spans],
        "warning": outcome.warning or None,
        "notes": outcome.notes,
        "licence": outcome.licence.word if outcome.licence else None,
    }


class ScoreParts:
    """The parts of a file of scores, locked while the `with` lasts.

    Parts that were begun with other `settings` are refused, with the first one that differs.
    """

    def __init__(self, out: str | os.PathLike[str], settings: Mapping[str, Any]) -> None:
        self.place = place_of(out)
        self.settings: dict[str, Any] = plain(settings)
        self._held = ExitStack()

    def __enter__(self) -> "ScoreParts":
        self.finished()  # refuses a file of others before there is a folder
        with ExitStack() as held:
            held.enter_context(self.place.held())
            self._begin()
            self._held = held.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._held, suppress(ResultFileError):  # of a store that does not answer any more
            if not self.place.has_parts() or self.place.is_whole():
                self.place.remove()

    def _begin(self) -> None:
        self.place.forget_drafts()
        if not self.place.has_parts():
            told = json.dumps(self.settings, ensure_ascii=False, indent=2) + "\n"
            self.place.write(MANIFEST, told.encode())
            return
        there = self.place.manifest()
        if there is None:
            path = f"{self.place.folder}/{MANIFEST}"
            raise ResultFileError(f"{path!r} is not there: delete the folder to begin anew")
        self._compare(there, self.place.folder)

    def _compare(self, there: Any, place: Path | str) -> None:
        differs = difference(there, self.settings)
        if differs:
            raise UsageError(
                f"{place} was begun with other settings: {differs}; ask for the same to go on, "
                f"or write to another file, or delete {place} to begin anew"
            )

    def finished(self) -> dict[str, Any] | None:
        """The details of the whole file; None if it is not there yet."""
        return None if not self.place.is_whole() else self._details()

    def _details(self) -> dict[str, Any]:
        out = self.place.out
        try:
            with self.place.open() as stream:
                metadata = parquet.ParquetFile(stream).schema_arrow.metadata or {}
                details: dict[str, Any] = json.loads(metadata[DETAILS])
                there = details["settings"]
        except _NOT_OURS as error:
            raise UsageError(
                f"{out} exists, and it holds no scores of Attlas: write to another file"
            ) from error
        if details.get("format") != FORMAT:
            raise UsageError(
                f"{out} has the columns of version {details.get('format')}, and this is "
                f"version {FORMAT}: write to another file"
            )
        self._compare(there, out)
        with self.place.open() as stream:
            if not is_sealed(stream, self._seal("scores")):
                raise ResultFileError(
                    f"{out} is damaged: it is not what was written; delete it to begin anew"
                )
        return details

    def whole(self) -> pa.Table:
        """The table of the whole file."""
        with self.place.open() as stream:
            return parquet.read_table(stream)

    def read(self, number: int) -> dict[str, Any] | None:
        """The details of a part; None if it is not done, or damaged."""
        found = self._part(number)
        return None if found is None else found[1]

    def table(self, number: int) -> pa.Table | None:
        """The table of a part; None if it is not done, or damaged."""
        found = self._part(number)
        return None if found is None else found[0]

    def _part(self, number: int) -> tuple[pa.Table, dict[str, Any]] | None:
        name = part_name(number)
        content = self.place.read(name)  # outside: a store that does not answer says nothing
        with suppress(ResultFileError):
            return None if content is None else unpack_bytes(content, self._seal(name), name)
        return None

    def write(self, number: int, table: pa.Table, details: Mapping[str, Any]) -> None:
        """Write a part whole."""
        name = part_name(number)
        self.place.write(name, pack_table(table, details, self._seal(name)))

    def join(self, count: int, schema: pa.Schema, details: Mapping[str, Any]) -> None:
        """Write the whole file from so many parts, holding few of them at a time."""
        told = {"format": FORMAT, **details, "settings": self.settings}
        out = self.place.out
        if self.finished() is not None:  # by another run, where nothing can be locked
            return
        try:
            joined = schema.with_metadata(metadata_with(schema, told))
            with self.place.draft() as draft:
                self._write(draft, joined, count)
        except (OSError, pa.ArrowException) as error:
            reason = getattr(error, "strerror", None) or " ".join(str(error).split())
            raise ResultFileError(
                f"cannot write {str(out)!r}: {reason}; {stopped_note(out)}"
            ) from error

    def _write(self, draft: Path, schema: pa.Schema, count: int) -> None:
        # Given its name, Arrow would take one with a colon for an address.
        with (
            draft.open("wb") as sink,
            parquet.ParquetWriter(sink, schema, write_page_checksum=True) as writer,
        ):
            for table in self._groups(count):
                writer.write_table(table.cast(schema), row_group_size=max(len(table), 1))
        with draft.open("rb+") as stream:
            seal(stream, self._seal("scores"))
            stream.flush()
            os.fsync(stream.fileno())

    def _groups(self, count: int) -> Iterator[pa.Table]:
        tables: list[pa.Table] = []
        held = 0
        for number in range(count):
            table = self.table(number)
            if table is None:
                place = f"{self.place.folder}/{part_name(number)}"
                raise ResultFileError(f"{place!r} cannot be read: it is not what was written there")
            tables.append(table)
            held += tables[-1].nbytes
            if held >= ROW_GROUP:
                yield pa.concat_tables(tables)
                tables, held = [], 0
        if tables:
            yield pa.concat_tables(tables)

    def _seal(self, name: str) -> str:
        """What a file is sealed with: what was asked for, and its name; users may rename theirs."""
        return f"{digest_of(self.settings)} {name}"


def part_name(number: int) -> str:
    """The name of the file of a part."""
    return f"{number:08d}{ENDING}"
