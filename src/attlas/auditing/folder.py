"""The folder that an audit works in: used by one run at a time, which resumes unfinished work."""

import json
import os
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from datetime import UTC, datetime
from hashlib import sha256
from pathlib import Path
from time import time
from types import TracebackType
from typing import Any
from urllib.parse import quote, unquote

import pandas as pd
import pyarrow as pa

from attlas.errors import ResultFileError, UsageError
from attlas.results.support.files import digest_of, plain
from attlas.results.support.lock import is_lock, locked
from attlas.results.support.tables import (
    difference,
    make_folder,
    pack_table,
    read_json,
    unpack_table,
)
from attlas.views import forget_drafts, write_whole

MANIFEST, LOCK, TABLES = "manifest.json", "lock", "parts"
RESULTS, REPORT, PAGE = "results.parquet", "report.json", "report.html"
CLAIM = ".claim"
FORMAT = 2


class Folder:
    """A folder locked while the `with` lasts: tables as they are finished, then the results.

    A table is on disk whole or not at all, whenever the run is killed. A folder that was begun with
    other `settings` is refused, naming the first one that differs.
    """

    def __init__(self, path: str | os.PathLike[str], settings: Mapping[str, Any]) -> None:
        self.path = Path(os.path.expanduser(path))
        self.settings: dict[str, Any] = plain(settings)
        self.manifest: dict[str, Any] = {}
        self._tables = self.path / TABLES
        self._owner = digest_of(self.settings)  # tables of another audit are not taken for ours
        self._intact: set[str] = set()  # tables that were read or written without an error
        self._held = ExitStack()

    def __enter__(self) -> "Folder":
        with ExitStack() as held:
            make_folder(self.path)
            was_begun = is_lock(self.path / LOCK)
            self._refuse_foreign_files()
            held.enter_context(locked(self.path / LOCK))
            self._begin(was_begun)
            self._held = held.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._held.close()

    def _begin(self, was_begun: bool) -> None:
        manifest = read_manifest(self.path)
        if manifest is None:
            manifest = self._first_manifest()
            _write_manifest(self.path, manifest)
        self._check(manifest)
        make_folder(self._tables)
        if was_begun:
            for folder in (self.path, self._tables):
                forget_drafts(folder)
        self._forget_claims()

    def _first_manifest(self) -> dict[str, Any]:
        begun = {"started": _now(), "done": False}
        return {"format": FORMAT, "settings": self.settings, **begun}

    def _check(self, manifest: dict[str, Any]) -> None:
        """Refuse a folder that was begun with other settings."""
        differs = difference(manifest["settings"], self.settings)
        if differs:
            raise UsageError(
                f"{self.path} holds an audit with other settings: {differs}; "
                "use the same settings to resume it, or another folder"
            )
        self.manifest = manifest

    def _refuse_foreign_files(self) -> None:
        """Never overwrite what an audit did not write, nor leave a lock beside it."""
        if read_manifest(self.path) is not None:
            return
        for name in (RESULTS, TABLES, REPORT, PAGE):
            if os.path.lexists(self.path / name):
                reason = "exists, but no audit wrote it: use another folder"
                raise UsageError(f"{self.path / name} {reason}")

    # Tables

    def has(self, name: str) -> bool:
        """Whether a table is finished; a damaged one is not."""
        if name not in self._intact and self._file(name).exists():
            try:
                self.read(name)
            except ResultFileError:
                return False
        return name in self._intact

    def write(
        self, name: str, frame: pd.DataFrame | pa.Table, details: Mapping[str, Any] | None = None
    ) -> None:
        """Write a table whole, replacing the one of this name."""
        write_whole(self._file(name), _packed(frame, details or {}, self._seal(name)))
        self._intact.add(name)

    def read(self, name: str) -> tuple[pd.DataFrame, dict[str, Any]]:
        """A table and its details."""
        table, details = unpack_table(self._file(name), self._seal(name))
        self._intact.add(name)
        return table.to_pandas(use_threads=False), details

    def remove(self, name: str) -> None:
        """Delete a table."""
        self._file(name).unlink(missing_ok=True)
        self._intact.discard(name)

    def written(self, names: Iterable[str]) -> int:
        """How many of these tables exist, whichever process wrote them."""
        return sum(self._file(name).exists() for name in names)

    def claim(self, name: str) -> bool:
        """Claim the work on a table for this process; False if another process has claimed it."""
        try:
            self._file(name).with_suffix(CLAIM).touch(exist_ok=False)
        except FileExistsError:
            return False
        except OSError as error:
            reason = f"cannot write in {str(self._tables)!r}: {error.strerror}"
            raise ResultFileError(reason) from error
        return True

    def _forget_claims(self) -> None:
        for path in self._tables.glob(f"*{CLAIM}"):
            path.unlink(missing_ok=True)

    def tables(self) -> list[str]:
        """The names of the finished tables."""
        names = sorted(unquote(path.stem) for path in self._tables.glob("*.parquet"))
        return [name for name in names if self.has(name)]

    def remove_tables(self) -> None:
        """Delete the tables, once the results made from them are written."""
        for path in self._tables.glob("*.parquet"):
            path.unlink(missing_ok=True)
        self._forget_claims()
        self._intact.clear()

    def _file(self, name: str) -> Path:
        if not name:
            raise UsageError("a table needs a name")
        return self._tables / f"{quote(name, safe=' ')}.parquet"

    def _seal(self, name: str) -> str:
        """What a table is sealed with: its audit and its name."""
        return f"{self._owner} {name}"

    # Runs

    @property
    def runs(self) -> list[tuple[float, float]]:
        """When each run began and when it was last known to work, in seconds."""
        return [(start, end) for start, end in self.manifest.get("runs", [])]

    @contextmanager
    def noting_run(self, start: float) -> Iterator[None]:
        """Note a run that began at `start` and ends with the block, also if an error ends it."""
        earlier = self.runs
        try:
            self._note_runs([*earlier, (start, time())])
            yield
        finally:
            self._note_runs([*earlier, (start, time())])

    def _note_runs(self, runs: list[tuple[float, float]]) -> None:
        self.manifest = {**self.manifest, "runs": runs}
        _write_manifest(self.path, self.manifest)

    # Results

    @property
    def done(self) -> bool:
        """Whether the results are written."""
        return bool(self.manifest["done"])

    def finish(
        self,
        frame: pd.DataFrame | pa.Table,
        manifest: Mapping[str, Any],
        texts: Mapping[str, str] | None = None,
    ) -> None:
        """Write the results and texts, then the manifest that says they are done; tables stay."""
        files = {name: _digest(text.encode()) for name, text in (texts or {}).items()}
        for name, text in (texts or {}).items():
            write_whole(self.path / name, text)
        packed = _packed(frame, {}, self._seal(RESULTS))
        write_whole(self.path / RESULTS, packed)
        said = {**plain(manifest), **self.manifest}
        written = {"files": {**files, RESULTS: _digest(packed)}}
        self.manifest = {**said, **written, "finished": _now(), "done": True}
        _write_manifest(self.path, self.manifest)

    def results(self) -> pd.DataFrame:
        """The results as written."""
        table, _ = unpack_table(self.path / RESULTS, self._seal(RESULTS))
        frame: pd.DataFrame = table.to_pandas(use_threads=False)
        return frame

    def content(self, name: str) -> bytes | None:
        """A file that `finish` wrote; None if it is gone, or is not what was written."""
        try:
            content = (self.path / name).read_bytes()
        except OSError:
            return None
        known = self.manifest.get("files", {}).get(name)
        return content if known == _digest(content) else None

    def begin_anew(self) -> None:
        """Forget that the results are written: they are no longer what they were."""
        runs = {"runs": self.manifest.get("runs", [])}
        self.manifest = {**self._first_manifest(), **runs}
        _write_manifest(self.path, self.manifest)


class JoinedFolder(Folder):
    """A folder that another process has locked, and that this process works in too."""

    def __enter__(self) -> "JoinedFolder":
        manifest = read_manifest(self.path)
        if manifest is None:
            raise UsageError(f"{self.path} holds no audit to join")
        self._check(manifest)
        return self


def read_manifest(path: Path) -> dict[str, Any] | None:
    """The manifest in a folder; None if there is none."""
    file = path / MANIFEST
    manifest = read_json(file)
    if manifest is None and not os.path.lexists(file):
        return None
    if not isinstance(manifest, dict) or not {"settings", "done"} <= manifest.keys():
        raise UsageError(f"{file} exists, but no audit wrote it: use another folder")
    if manifest.get("format") != FORMAT:
        raise ResultFileError(
            f"{str(file)!r} has format {manifest.get('format')!r}; this version of Attlas "
            f"reads {FORMAT}: use another folder"
        )
    if manifest.pop("digest", None) != digest_of(manifest):
        raise ResultFileError(f"{str(file)!r} is not what was written there: use another folder")
    return manifest


def _write_manifest(path: Path, manifest: Mapping[str, Any]) -> None:
    record = {**manifest, "digest": digest_of(plain(manifest))}
    write_whole(path / MANIFEST, json.dumps(plain(record), ensure_ascii=False, indent=2) + "\n")


def _digest(content: bytes) -> str:
    return sha256(content).hexdigest()


def _packed(frame: pd.DataFrame | pa.Table, details: Mapping[str, Any], name: str) -> bytes:
    """A table as a file, without the index of the frame."""
    if isinstance(frame, pd.DataFrame):
        return pack_table(pa.Table.from_pandas(frame, preserve_index=False), details, name)
    return pack_table(frame, details, name)


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
