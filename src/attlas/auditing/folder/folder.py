"""The folder an audit works in: one run at a time, which goes on where the last one stopped."""

import json
import os
from collections.abc import Iterable, Mapping
from contextlib import ExitStack
from datetime import UTC, datetime
from pathlib import Path
from types import TracebackType
from typing import Any
from urllib.parse import quote, unquote

import pandas as pd
import pyarrow as pa

from attlas.auditing.folder.lock import locked
from attlas.auditing.folder.packed_tables import Part, pack, unpack
from attlas.errors import ResultFileError, UsageError
from attlas.results.support.files import plain
from attlas.views import write_whole

MANIFEST = "manifest.json"
RESULTS = "results.parquet"
CLAIM = ".claim"
FORMAT = 1
_MISSING = "not given"


class Folder:
    """A folder that is this run's while the `with` lasts: parts as they are done, then the results.

    A part is there whole or not at all, whenever the run is killed. A folder that was begun with
    other `settings` is refused, with the first that differs.
    """

    def __init__(self, path: str | os.PathLike[str], settings: Mapping[str, Any]) -> None:
        self.path = Path(path).expanduser()
        self.settings: dict[str, Any] = plain(settings)
        self.manifest: dict[str, Any] = {}
        self._parts = self.path / "parts"
        self._whole: set[str] = set()  # parts that were read or written, and are whole
        self._held = ExitStack()

    def __enter__(self) -> "Folder":
        with ExitStack() as held:
            _make(self.path)
            held.enter_context(locked(self.path / "lock"))
            self._begin()
            self._held = held.pop_all()
        return self

    def __exit__(
        self,
        kind: type[BaseException] | None,
        error: BaseException | None,
        trace: TracebackType | None,
    ) -> None:
        self._held.close()

    def _begin(self) -> None:
        found = read_manifest(self.path)
        if found is None:
            self._refuse_others()
            found = {"format": FORMAT, "settings": self.settings, "started": _now(), "done": False}
            _write_manifest(self.path, found)
        self._check(found)
        _make(self._parts)
        for draft in (*self.path.glob(".attlas-*"), *self._parts.glob(".attlas-*")):
            draft.unlink(missing_ok=True)  # what a killed run was writing
        self._forget_claims()

    def _check(self, found: dict[str, Any]) -> None:
        """Whether what is there was begun with these settings."""
        differs = first_difference(found["settings"], self.settings)
        if differs is not None:
            name, there, here = differs
            raise UsageError(
                f"{self.path} holds an audit with other settings: {name} is {_shown(there)} there "
                f"and {_shown(here)} here; give the same to go on with it, or another folder"
            )
        self.manifest = found

    def _refuse_others(self) -> None:
        """Nothing that an audit did not write is ever written over."""
        for path in (self.path / RESULTS, self._parts):
            if path.exists():
                raise UsageError(f"{path} is there, but is of no audit: give another folder")

    # Parts

    def has(self, name: str) -> bool:
        """Whether a part is done; one that is damaged is not."""
        if name not in self._whole and self._file(name).exists():
            try:
                self.read(name)
            except ResultFileError:
                return False
        return name in self._whole

    def write(
        self, name: str, frame: pd.DataFrame | pa.Table, details: Mapping[str, Any] | None = None
    ) -> None:
        """Write a part whole; what was there under this name is replaced."""
        write_whole(self._file(name), pack(frame, details or {}))
        self._whole.add(name)

    def read(self, name: str) -> Part:
        """The table and the details of a part."""
        part = unpack(self._file(name))
        self._whole.add(name)
        return part

    def written(self, names: Iterable[str]) -> int:
        """How many of these parts are there, whoever wrote them."""
        return sum(self._file(name).exists() for name in names)

    def claim(self, name: str) -> bool:
        """Take a part on, where several processes work; False where one has done so before."""
        try:
            self._file(name).with_suffix(CLAIM).touch(exist_ok=False)
        except FileExistsError:
            return False
        except OSError as error:
            reason = f"cannot write in {str(self._parts)!r}: {error.strerror}"
            raise ResultFileError(reason) from error
        return True

    def _forget_claims(self) -> None:
        for path in self._parts.glob(f"*{CLAIM}"):
            path.unlink(missing_ok=True)

    def parts(self) -> list[str]:
        """The names of the parts that are done."""
        names = sorted(unquote(path.stem) for path in self._parts.glob("*.parquet"))
        return [name for name in names if self.has(name)]

    def remove_parts(self) -> None:
        """Take the parts away, once what they were for is written."""
        for path in self._parts.glob("*.parquet"):
            path.unlink(missing_ok=True)
        self._forget_claims()
        self._whole.clear()

    def _file(self, name: str) -> Path:
        if not name:
            raise UsageError("a part needs a name")
        return self._parts / f"{quote(name, safe=' ')}.parquet"

    # Results

    @property
    def done(self) -> bool:
        """Whether the results were written."""
        return bool(self.manifest["done"])

    def finish(self, frame: pd.DataFrame | pa.Table, manifest: Mapping[str, Any]) -> None:
        """Write the results, then the manifest that says they are done; the parts stay."""
        write_whole(self.path / RESULTS, pack(frame, {}))
        known = {**self.manifest, "finished": _now(), "done": True}
        _write_manifest(self.path, {**plain(manifest), **known})
        self.manifest = {**plain(manifest), **known}

    def results(self) -> pd.DataFrame:
        """The results that were written."""
        return unpack(self.path / RESULTS)[0]


class JoinedFolder(Folder):
    """A folder that another process holds, and this one works in beside it."""

    def __enter__(self) -> "JoinedFolder":
        found = read_manifest(self.path)
        if found is None:
            raise UsageError(f"{self.path} holds no audit to join")
        self._check(found)
        return self


def read_manifest(path: Path) -> dict[str, Any] | None:
    """What the manifest in a folder says; None where there is none."""
    file = path / MANIFEST
    try:
        found = json.loads(file.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError) as error:
        raise ResultFileError(f"{str(file)!r} cannot be read: {error}") from error
    if not isinstance(found, dict) or not {"settings", "done"} <= found.keys():
        raise UsageError(f"{file} is there, but is of no audit: give another folder")
    if found.get("format") != FORMAT:
        raise ResultFileError(
            f"{str(file)!r} has format {found.get('format')!r}; this version of Attlas "
            f"reads {FORMAT}: give another folder"
        )
    return found


def first_difference(there: Any, here: Any, name: str = "") -> tuple[str, Any, Any] | None:
    """The first setting that differs, by its name, and what it is in both."""
    before, now = _members(there), _members(here)
    if before is None or now is None or type(there) is not type(here):
        return None if there == here else (name or "all", there, here)
    for key in dict.fromkeys([*now, *before]):
        inner = f"{name}.{key}" if name else str(key)
        pair = before.get(key, _MISSING), now.get(key, _MISSING)
        if (found := first_difference(*pair, inner)) is not None:
            return found
    return None


def _members(value: Any) -> dict[Any, Any] | None:
    if isinstance(value, list):
        return dict(enumerate(value, 1))
    return value if isinstance(value, dict) else None


def _shown(value: Any) -> str:
    text = value if value == _MISSING else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:59]}…"


def _write_manifest(path: Path, manifest: Mapping[str, Any]) -> None:
    write_whole(path / MANIFEST, json.dumps(manifest, ensure_ascii=False, indent=2) + "\n")


def _make(path: Path) -> None:
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise UsageError(f"{path} cannot be a folder: there is a file in its place") from error
    except OSError as error:
        raise ResultFileError(f"cannot make the folder {str(path)!r}: {error.strerror}") from error


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="seconds")
