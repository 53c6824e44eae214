"""One run at a time: a lock on a file, released when the process ends, however it ends."""

import os
import platform
import re
import stat
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from io import FileIO
from pathlib import Path

from attlas.errors import ResultFileError, UsageError

try:
    import fcntl
except ImportError:  # Windows
    fcntl = None  # type: ignore[assignment]

_CONTENT = re.compile(r"(\d+ on .*)?", re.DOTALL)  # nothing, if the holder was killed early
_LONGEST = 2**12
_FAR = 2**30  # Windows hides the bytes it locks: lock one that nobody reads


@contextmanager
def locked(path: Path, place: str = "folder") -> Iterator[None]:
    """Lock the file, or raise an error that says which process holds it.

    Only its holder may delete the file. `place` is what the user may choose another of. A file
    that is no lock of ours, or a link, is left alone.
    """
    if os.path.lexists(path) and not is_lock(path):
        raise UsageError(f"{path} exists, but Attlas did not write it: use another {place}")
    try:
        file = FileIO(path, "a+", opener=_open)
    except OSError as error:
        reason = f"cannot write in {str(path.parent)!r}: {error.strerror}"
        raise ResultFileError(reason) from error
    with file:
        try:
            _take(file)
        except BlockingIOError as error:
            raise UsageError(
                f"{path.parent} is in use by another run (process {_holder(file)}): "
                f"wait until it ends, or use another {place}"
            ) from error
        except OSError as error:
            reason = f"cannot lock {str(path)!r}: {error.strerror}"
            raise ResultFileError(reason) from error
        with suppress(OSError):  # the content only serves the error message above
            file.truncate(0)
            content = f"{os.getpid()} on {platform.node()}".encode()
            if file.write(content) != len(content):  # a full disk takes a part of it
                file.truncate(0)
        yield


def is_lock(path: Path) -> bool:
    """Whether this is a file that `locked` has made; it may be held or not."""
    try:
        if not stat.S_ISREG(path.lstat().st_mode):
            return False
        with path.open("rb") as file:
            return bool(_CONTENT.fullmatch(file.read(_LONGEST).decode(errors="replace")))
    except OSError:
        return False


def _open(path: str | Path, flags: int) -> int:
    return os.open(path, flags | getattr(os, "O_NOFOLLOW", 0), 0o666)


def _take(file: FileIO) -> None:
    """Lock without waiting; BlockingIOError if another process holds the lock."""
    if fcntl is not None:
        fcntl.flock(file, fcntl.LOCK_EX | fcntl.LOCK_NB)
        if os.fstat(file.fileno()).st_nlink == 0:  # deleted by who held it: another may be there
            raise BlockingIOError
        return
    import msvcrt

    file.seek(_FAR)
    try:
        msvcrt.locking(file.fileno(), msvcrt.LK_NBLCK, 1)
    except PermissionError as error:
        raise BlockingIOError(*error.args) from error


def _holder(file: FileIO) -> str:
    file.seek(0)
    return file.read().decode(errors="replace") or "unknown"
