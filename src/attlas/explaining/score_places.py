"""Where a table of scores is written, and its parts beside it: on a disk here, or at an address."""

import json
import os
import re
from collections.abc import Callable, Collection, Iterator
from contextlib import contextmanager, suppress
from glob import has_magic
from pathlib import Path, PurePosixPath
from tempfile import TemporaryDirectory
from typing import Any, TypeVar

from attlas.data.files.places import asked, is_address
from attlas.errors import AttlasError, ResultFileError, UsageError, first_line
from attlas.results.support.lock import is_lock, locked
from attlas.results.support.tables import make_folder, read_json
from attlas.views import forget_drafts, write_whole

ENDING = ".parquet"
MANIFEST, LOCK, JOINED = "manifest.json", "lock", ".attlas-joined"
PARTS = f"{'[0-9]' * 8}{ENDING}"
_PART = re.compile(rf"[0-9]{{8}}{re.escape(ENDING)}")
Answer = TypeVar("Answer")


class LocalPlace:
    """A file on a disk; one run at a time holds the folder of its parts."""

    def __init__(self, out: Path) -> None:
        self.out = out
        self.folder = out.with_name(f"{out.name}.parts")

    def check(self) -> None:
        """Refuse a file that cannot be written."""
        folder = self.out.parent
        if not os.path.isdir(folder):  # unlike that of Path, for names of any length
            raise UsageError(f"{self.out} cannot be written: the folder {folder} is not there")
        if os.path.isdir(self.out):
            raise UsageError(f"{self.out} cannot be written: it is a folder")
        if os.path.exists(self.out) and not os.path.isfile(self.out):  # a pipe is read forever
            raise UsageError(f"{self.out} cannot be written: it is no plain file")

    @contextmanager
    def held(self) -> Iterator[None]:
        """Have the folder for this run alone; that of others is never touched."""
        is_there = os.path.lexists(self.folder) and not is_lock(self.folder / LOCK)  # ours has one
        if is_there and (not self.folder.is_dir() or any(self.folder.iterdir())):
            raise UsageError(f"{self.folder} {_FOREIGN}")
        make_folder(self.folder)
        with locked(self.folder / LOCK, "file"):
            yield

    def is_whole(self) -> bool:
        """Whether there is a file of this name."""
        return os.path.exists(self.out)

    def open(self) -> Any:
        """The whole file, to be read."""
        return self.out.open("rb")

    def has_parts(self) -> bool:
        """Whether any part is done."""
        return any(self.folder.glob(PARTS))

    def manifest(self) -> Any:
        """What was asked for when the parts were begun; None if nothing says so."""
        return read_json(self.folder / MANIFEST)

    def read(self, name: str) -> bytes | None:
        """A part; None if it is not there."""
        try:
            return (self.folder / name).read_bytes()
        except OSError:
            return None

    def write(self, name: str, content: bytes) -> None:
        """Write a part, or what was asked for, whole."""
        write_whole(self.folder / name, content)

    @contextmanager
    def draft(self) -> Iterator[Path]:
        """A file that becomes the whole one if nothing fails."""
        draft = self.folder / JOINED
        yield draft
        os.replace(draft, self.out)

    def forget_drafts(self) -> None:
        """Delete what a run that was killed was writing."""
        forget_drafts(self.folder)
        if not (self.folder / JOINED).is_dir():
            (self.folder / JOINED).unlink(missing_ok=True)

    def remove(self) -> None:
        """Delete the parts; the lock last, as it is held."""
        with suppress(OSError):  # what cannot be deleted does no harm
            self.forget_drafts()
            for path in self.folder.glob(PARTS):
                path.unlink()
            for name in (MANIFEST, LOCK):
                (self.folder / name).unlink(missing_ok=True)
            self.folder.rmdir()

    def keeps(self) -> bool:
        """Whether a run that was stopped has left anything."""
        return os.path.isdir(self.folder)


class RemotePlace:
    """A file in a store, whose objects are there whole or not at all.

    Nothing is locked there. Runs that were asked for the same write the same parts, so it does no
    harm if two do, but for the work.
    """

    def __init__(self, address: str, system: Any, path: str) -> None:
        self.out, self.folder = address, f"{address}.parts"
        self._system, self._path, self._parts = system, path, f"{path}.parts"
        self._there: set[str] = set()

    def check(self) -> None:
        """Refuse a file that cannot be written."""
        if self._kind() == "directory":
            raise UsageError(f"{self.out} cannot be written: it is a folder")

    @contextmanager
    def held(self) -> Iterator[None]:
        """Look what is there; the files of others are never touched."""
        self._there = self._names()
        if any(name != MANIFEST and not _PART.fullmatch(name) for name in self._there):
            raise UsageError(f"{self.folder} {_FOREIGN}")
        self._ask("write", self._make_folder)
        yield

    def is_whole(self) -> bool:
        """Whether there is a file of this name."""
        return self._kind() is not None

    def open(self) -> Any:
        """The whole file, to be read."""
        return self._ask("read", lambda: self._system.open(self._path, "rb"))

    def has_parts(self) -> bool:
        """Whether any part is done."""
        return any(map(_PART.fullmatch, self._there))

    def manifest(self) -> Any:
        """What was asked for when the parts were begun; None if nothing says so."""
        content = self.read(MANIFEST)
        try:
            return None if content is None else json.loads(content)
        except (ValueError, RecursionError) as error:
            place = f"{self.folder}/{MANIFEST}"
            raise ResultFileError(f"{place} cannot be read: {first_line(error)}") from error

    def read(self, name: str) -> bytes | None:
        """A part; None if it is not there."""
        if name not in self._there:
            return None
        try:
            path = f"{self._parts}/{name}"
            content: bytes = self._ask("read", lambda: self._system.cat_file(path))
        except FileNotFoundError:
            return None
        return content

    def write(self, name: str, content: bytes) -> None:
        """Write a part, or what was asked for, whole."""
        path = f"{self._parts}/{name}"
        self._ask("write", lambda: self._system.pipe_file(path, content))
        self._there.add(name)

    @contextmanager
    def draft(self) -> Iterator[Path]:
        """A file of this machine that becomes the whole one if nothing fails."""
        with TemporaryDirectory() as folder:
            draft = Path(folder) / JOINED
            yield draft
            self._ask("write", lambda: self._system.put_file(str(draft), self._path))

    def forget_drafts(self) -> None:
        """There are none: an object is whole."""

    def remove(self) -> None:
        """Delete the parts."""
        with suppress(Exception):  # what cannot be deleted does no harm
            names = sorted(self._names())
            own = [name for name in names if name == MANIFEST or _PART.fullmatch(name)]
            self._system.rm([f"{self._parts}/{name}" for name in own])
            self._system.rmdir(self._parts)

    def keeps(self) -> bool:
        """Whether a run that was stopped has left anything, as far as the store answers."""
        try:
            return bool(self._names())
        except AttlasError:
            return True

    def _make_folder(self) -> None:
        # Parents are not made: a bucket is one, and its name may be mistyped.
        with suppress(FileExistsError):
            self._system.mkdir(self._parts, create_parents=False)

    def _kind(self) -> str | None:
        """What the store calls that which is there; None if nothing is."""
        try:
            self._system.invalidate_cache()
            return str(self._ask("read", lambda: self._system.info(self._path))["type"])
        except FileNotFoundError:
            return None

    def _names(self) -> set[str]:
        """The names of what is in the folder of parts."""
        try:
            self._system.invalidate_cache()
            found = self._ask("read", lambda: self._system.ls(self._parts, detail=False))
        except FileNotFoundError:
            return set()
        return {PurePosixPath(each).name for each in found} - {PurePosixPath(self._parts).name}

    def _ask(self, what: str, work: Callable[[], Answer]) -> Answer:
        """What the store answers; whatever it cannot do is one clear line.

        That there is nothing to be read is an answer.
        """
        try:
            return work()
        except Exception as problem:  # each kind of store has errors of its own
            if what == "read" and isinstance(problem, FileNotFoundError):
                raise
            reason = getattr(problem, "strerror", None) or first_line(problem)
            raise ResultFileError(f"cannot {what} {self.out!r}: {reason}") from problem


Place = LocalPlace | RemotePlace
_FOREIGN = "exists, but Attlas did not write it: write to another file"


def place_of(out: str | os.PathLike[str]) -> Place:
    """The place of a file by its name, or by its address."""
    name = os.fspath(out)
    if not is_address(name):
        return LocalPlace(Path(os.path.expanduser(name)))
    if "::" in name:
        raise UsageError(f"scores are written to one store, not to a chain of them: {name}")
    if has_magic(name):  # stores delete by patterns
        raise UsageError(f"{name} is a pattern, and scores are written to one file")
    from fsspec.core import url_to_fs

    system, path = asked(name, lambda: url_to_fs(name))
    is_local = "file" in _words(system.protocol)
    return LocalPlace(Path(path)) if is_local else RemotePlace(name, system, path)


def _words(given: str | Collection[str]) -> Collection[str]:
    return [given] if isinstance(given, str) else given


def check_out(out: str | os.PathLike[str]) -> None:
    """Refuse a file that scores cannot be written to."""
    if PurePosixPath(os.fspath(out)).suffix.lower() != ENDING:
        raise UsageError(f"scores are written to a file whose name ends in {ENDING}, not to {out}")
    place_of(out).check()


def stopped_note(out: str | os.PathLike[str]) -> str:
    """How work that was stopped goes on."""
    place = place_of(out)
    if not place.keeps():
        return "nothing is kept, as no part of the work was done; asked again, it begins anew"
    return f"what is done is kept in {place.folder}; asked again, it goes on from there"
