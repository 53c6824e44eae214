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
from attlas.results import Explanation
from attlas.results.support.files import digest_of, plain
from attlas.results.support.lock import is_lock, locked
from attlas.results.support.tables import (
    DETAILS,
    difference,
    is_sealed,
    make_folder,
    metadata_with,
    pack_table,
    read_json,
    seal,
    unpack_table,
)
from attlas.views import forget_drafts, write_whole

FORMAT = 1  # of the columns: it goes up when one is renamed, removed or changes its meaning
ENDING = ".parquet"
MANIFEST, LOCK, JOINED = "manifest.json", "lock", ".attlas-joined"
PARTS = f"{'[0-9]' * 8}{ENDING}"
ROW_GROUP = 2**25  # bytes of parts, as they are in memory, that the file holds as one group of rows

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
        self.out = Path(out).expanduser()
        self.folder = parts_folder(self.out)
        self.settings: dict[str, Any] = plain(settings)
        self._held = ExitStack()

    def __enter__(self) -> "ScoreParts":
        self.finished()  # refuses a file of others before there is a folder
        with ExitStack() as held:
            self._refuse_foreign_files()
            make_folder(self.folder)
            held.enter_context(locked(self.folder / LOCK, "file"))
            self._begin()
            self._held = held.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        with self._held:
            if self.out.exists() or not any(self.folder.glob(PARTS)):
                self._remove()

    def _refuse_foreign_files(self) -> None:
        """Never touch a folder of others; ours has a lock from the start."""
        if os.path.lexists(self.folder) and not is_lock(self.folder / LOCK):
            if self.folder.is_dir() and not any(self.folder.iterdir()):
                return
            reason = "exists, but Attlas did not write it: write to another file"
            raise UsageError(f"{self.folder} {reason}")

    def _begin(self) -> None:
        self._forget_drafts()
        path = self.folder / MANIFEST
        if not any(self.folder.glob(PARTS)):
            write_whole(path, json.dumps(self.settings, ensure_ascii=False, indent=2) + "\n")
            return
        there = read_json(path)
        if there is None:
            reason = "is not there: delete the folder to begin anew"
            raise ResultFileError(f"{str(path)!r} {reason}")
        self._compare(there, self.folder)

    def _forget_drafts(self) -> None:
        """Delete what a run that was killed was writing."""
        forget_drafts(self.folder)
        if not (self.folder / JOINED).is_dir():
            (self.folder / JOINED).unlink(missing_ok=True)

    def _compare(self, there: Any, place: Path) -> None:
        differs = difference(there, self.settings)
        if differs:
            raise UsageError(
                f"{place} was begun with other settings: {differs}; ask for the same to go on, "
                f"or write to another file, or delete {place} to begin anew"
            )

    def finished(self) -> dict[str, Any] | None:
        """The details of the whole file; None if it is not there yet."""
        if not os.path.exists(self.out):
            return None
        try:
            metadata = parquet.read_schema(self.out).metadata or {}
            details: dict[str, Any] = json.loads(metadata[DETAILS])
            there = details["settings"]
        except (
            *(OSError, pa.ArrowException, LookupError, TypeError, ValueError, RecursionError),
        ) as error:
            raise UsageError(
                f"{self.out} exists, and it holds no scores of Attlas: write to another file"
            ) from error
        if details.get("format") != FORMAT:
            raise UsageError(
                f"{self.out} has the columns of version {details.get('format')}, and this is "
                f"version {FORMAT}: write to another file"
            )
        self._compare(there, self.out)
        with self.out.open("rb") as stream:
            if not is_sealed(stream, self._seal("scores")):
                raise ResultFileError(
                    f"{self.out} is damaged: it is not what was written; delete it to begin anew"
                )
        return details

    def read(self, number: int) -> dict[str, Any] | None:
        """The details of a part; None if it is not done, or damaged."""
        try:
            return unpack_table(self._file(number), self._seal(self._file(number).name))[1]
        except ResultFileError:
            return None

    def table(self, number: int) -> pa.Table | None:
        """The table of a part; None if it is not done, or damaged."""
        try:
            return unpack_table(self._file(number), self._seal(self._file(number).name))[0]
        except ResultFileError:
            return None

    def write(self, number: int, table: pa.Table, details: Mapping[str, Any]) -> None:
        """Write a part whole."""
        file = self._file(number)
        write_whole(file, pack_table(table, details, self._seal(file.name)))

    def join(self, count: int, schema: pa.Schema, details: Mapping[str, Any]) -> None:
        """Write the whole file from so many parts, holding few of them at a time."""
        draft = self.folder / JOINED
        told = {"format": FORMAT, **details, "settings": self.settings}
        try:
            joined = schema.with_metadata(metadata_with(schema, told))
            with parquet.ParquetWriter(draft, joined, write_page_checksum=True) as writer:
                for table in self._groups(count):
                    writer.write_table(table.cast(joined), row_group_size=max(len(table), 1))
            with draft.open("rb+") as stream:
                seal(stream, self._seal("scores"))
                stream.flush()
                os.fsync(stream.fileno())
            os.replace(draft, self.out)
        except (OSError, pa.ArrowException) as error:
            reason = getattr(error, "strerror", None) or " ".join(str(error).split())
            raise ResultFileError(
                f"cannot write {str(self.out)!r}: {reason}; {stopped_note(self.out)}"
            ) from error

    def _groups(self, count: int) -> Iterator[pa.Table]:
        tables: list[pa.Table] = []
        held = 0
        for number in range(count):
            file = self._file(number)
            tables.append(unpack_table(file, self._seal(file.name))[0])
            held += tables[-1].nbytes
            if held >= ROW_GROUP:
                yield pa.concat_tables(tables)
                tables, held = [], 0
        if tables:
            yield pa.concat_tables(tables)

    def _file(self, number: int) -> Path:
        return self.folder / f"{number:08d}.parquet"

    def _seal(self, name: str) -> str:
        """What a file is sealed with: what was asked for, and its name; users may rename theirs."""
        return f"{digest_of(self.settings)} {name}"

    def _remove(self) -> None:
        """Delete the parts; the lock last, as it is held."""
        with suppress(OSError):  # what cannot be deleted does no harm
            self._forget_drafts()
            for path in self.folder.glob(PARTS):
                path.unlink()
            for name in (MANIFEST, LOCK):
                (self.folder / name).unlink(missing_ok=True)
            self.folder.rmdir()


def check_out(given: str | os.PathLike[str]) -> None:
    """Refuse a file that scores cannot be written to."""
    out = Path(given).expanduser()
    if out.suffix.lower() != ENDING:
        raise UsageError(f"scores are written to a file whose name ends in {ENDING}, not to {out}")
    if not os.path.isdir(out.parent):  # unlike that of Path, for names of any length
        raise UsageError(f"{out} cannot be written: the folder {out.parent} is not there")
    if os.path.isdir(out):
        raise UsageError(f"{out} cannot be written: it is a folder")
    if os.path.exists(out) and not os.path.isfile(out):  # to look into a pipe would take forever
        raise UsageError(f"{out} cannot be written: it is no plain file")


def parts_folder(out: Path) -> Path:
    """Where the parts of a file are while it is in the making."""
    return out.with_name(f"{out.name}.parts")


def stopped_note(out: str | os.PathLike[str]) -> str:
    """How work that was stopped goes on."""
    folder = parts_folder(Path(out))
    if not os.path.isdir(folder.expanduser()):
        return "nothing is kept, as no part of the work was done; asked again, it begins anew"
    return f"what is done is kept in {folder}; asked again, it goes on from there"
