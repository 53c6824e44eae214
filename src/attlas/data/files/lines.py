"""The lines of a text file, compressed or not; a file that cannot be read is one clear error."""

import gzip
import zlib
from collections.abc import Iterator
from io import BufferedReader, TextIOWrapper
from pathlib import Path

from attlas.errors import UsageError


def lines(path: Path) -> Iterator[str]:
    """Read the lines with their line ends, without a byte order mark."""
    try:
        encoding = _encoding(path)
        with _bytes(path) as raw, TextIOWrapper(raw, encoding=encoding, newline="") as text:
            yield from text
    except UnicodeError as error:
        raise UsageError(_not_text(path, encoding)) from error
    except (OSError, EOFError, zlib.error) as error:
        reason = getattr(error, "strerror", None) or str(error)
        raise UsageError(f"{path} cannot be read: {reason}") from error


def _bytes(path: Path) -> BufferedReader | gzip.GzipFile:
    return gzip.open(path, "rb") if path.suffix.lower() == ".gz" else path.open("rb")


def _encoding(path: Path) -> str:
    with _bytes(path) as raw:
        return "utf-16" if raw.read(2) in (b"\xff\xfe", b"\xfe\xff") else "utf-8-sig"


def _not_text(path: Path, encoding: str) -> str:
    """Name the wrong line, which the decoder does not know because it reads ahead."""
    place = ""
    if encoding == "utf-8-sig":
        with _bytes(path) as raw:
            place = next(f" in line {n}" for n, line in enumerate(raw, 1) if not _is_utf8(line))
    name = "UTF-16" if encoding == "utf-16" else "UTF-8"
    return f"{path} is not {name}: it has other bytes{place}; save it as UTF-8"


def _is_utf8(line: bytes) -> bool:
    try:
        line.decode()
    except UnicodeDecodeError:
        return False
    return True
