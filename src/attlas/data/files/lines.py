"""The lines of a text file, compressed or not; a file that cannot be read is one clear error."""

import gzip
import os
import zlib
from collections.abc import Iterator
from contextlib import contextmanager
from io import TextIOWrapper
from itertools import chain
from pathlib import Path
from typing import Any

from attlas.data.files.places import RemoteFile, is_address
from attlas.errors import AttlasError, UsageError, first_line, in_short

# What reading a damaged file raises, in Python, zlib and Arrow, whose errors are among these too.
UNREADABLE = (
    *(OSError, EOFError, ValueError, ArithmeticError, LookupError, TypeError),
    *(NotImplementedError, RecursionError, MemoryError, zlib.error),
)


def lines(path: Path | RemoteFile) -> Iterator[str]:
    """Read the lines with their line ends, without a byte order mark."""
    try:
        encoding = _encoding(path)
        with _bytes(path) as raw, TextIOWrapper(raw, encoding=encoding, newline="") as text:
            first = next(text, "")
            if "\0" in first:
                reason = "has zero bytes in its first line: save it as UTF-8"
                raise UsageError(f"{path} {reason}")
            yield from chain([first] if first else [], text)
    except UnicodeError as error:
        raise UsageError(_not_text(path, encoding)) from error
    except Exception as error:
        if not is_unreadable(path, error):
            raise
        raise unreadable(path, error) from error


def is_unreadable(path: Any, problem: Exception) -> bool:
    """Whether an error says that a file cannot be read; each kind of store has its own errors."""
    is_known = isinstance(problem, UNREADABLE) or is_address(str(path))
    return is_known and not isinstance(problem, AttlasError)


def exists(path: Path) -> bool:
    """Whether a file or folder is there; nothing is, under a name that cannot be one."""
    try:
        return Path(os.path.expanduser(path)).exists()
    except (OSError, ValueError, RuntimeError):
        return False


def unreadable(path: Any, problem: Exception) -> UsageError:
    """What to raise where a file cannot be read."""
    reason = getattr(problem, "strerror", None) or first_line(problem)
    return UsageError(f"{in_short(str(path), 300)} cannot be read: {reason}")


@contextmanager
def _bytes(path: Path | RemoteFile) -> Iterator[Any]:
    with path.open("rb") as raw:
        if path.suffix.lower() != ".gz":
            yield raw
            return
        with gzip.open(raw, "rb") as unpacked:
            yield unpacked


def _encoding(path: Path | RemoteFile) -> str:
    with _bytes(path) as raw:
        return "utf-16" if raw.read(2) in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"


def _not_text(path: Path | RemoteFile, encoding: str) -> str:
    """Name the wrong line, which the decoder does not know because it reads ahead."""
    place = ""
    if encoding == "utf-8-sig":
        with _bytes(path) as raw:
            wrong = (f" in line {n}" for n, line in enumerate(raw, 1) if not _is_utf8(line))
            place = next(wrong, " at its end")
    name = "UTF-16" if encoding == "utf-16" else "UTF-8"
    return f"{path} is not {name}: it has other bytes{place}; save it as UTF-8"


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True
