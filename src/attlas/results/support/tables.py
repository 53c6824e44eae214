"""Parquet files that say whether they are whole, and settings that say how they differ.

A file is sealed: in its footer is a digest of all its bytes and of its name. A changed bit, or a
file in the place of another, does not match it. To any other reader it is a plain Parquet file.
"""

import io
import json
import os
from collections.abc import Iterator, Mapping
from hashlib import sha256
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from attlas.errors import ResultFileError, UsageError, refuse_address
from attlas.results.support.files import plain

DETAILS = b"attlas"  # the key of the details among the metadata of a Parquet file
SEAL, SIGN = (
    b"attlas seal",
    b"attlas seal is ",
)  # the key of the seal, and what its value starts with
_UNSEALED = SIGN + b"0" * 64
_ENDING = 8  # bytes behind the footer: its length, and the mark of the format
_CHUNK = 2**20
_MISSING = "not given"


def pack_table(table: pa.Table, details: Mapping[str, Any], name: str) -> bytes:
    """A sealed Parquet file that holds the details too; the name says where it belongs."""
    sink = pa.BufferOutputStream()
    detailed = table.replace_schema_metadata(metadata_with(table.schema, details))
    parquet.write_table(detailed, sink, write_page_checksum=True)
    stream = io.BytesIO(sink.getvalue())
    seal(stream, name)
    return stream.getvalue()


def metadata_with(schema: pa.Schema, details: Mapping[str, Any]) -> dict[bytes, bytes]:
    """The metadata of a table with the details among them, and room for the seal."""
    encoded = json.dumps(plain(details), allow_nan=False).encode()
    return {**(schema.metadata or {}), DETAILS: encoded, SEAL: _UNSEALED}


def unpack_table(path: Path, name: str) -> tuple[pa.Table, dict[str, Any]]:
    """The table and the details in a file; one kind of error for whatever is wrong with it."""
    try:
        content = path.read_bytes()
    except (OSError, ValueError) as error:
        raise _unreadable(path, error) from error
    return unpack_bytes(content, name, path)


def unpack_bytes(content: bytes, name: str, path: Path | str) -> tuple[pa.Table, dict[str, Any]]:
    """The same of the bytes of a file."""
    try:
        if not is_sealed(io.BytesIO(content), name):
            raise ValueError("it is not what was written there")
        table = parquet.ParquetFile(pa.BufferReader(content)).read(use_threads=False)
        return table, dict(json.loads(table.schema.metadata[DETAILS]))
    except (OSError, pa.ArrowException, LookupError, TypeError, ValueError) as error:
        raise _unreadable(path, error) from error


def _unreadable(path: Path | str, error: Exception) -> ResultFileError:
    reason = " ".join(str(error).split())[:200]
    return ResultFileError(f"{str(path)!r} cannot be read: {reason}")


def seal(stream: io.BufferedIOBase, name: str) -> None:
    """Write the digest of a Parquet file and its name into the room that was left for it."""
    place = _place(stream)
    assert place is not None, "the file has no room for a seal"
    digest = _digest(stream, place, name)
    stream.seek(place)
    stream.write(digest)


def is_sealed(stream: io.BufferedIOBase, name: str) -> bool:
    """Whether every byte of a file is as it was written, under this name."""
    place = _place(stream)
    if place is None:
        return False
    stream.seek(place)
    return stream.read(64) == _digest(stream, place, name)


def _place(stream: io.BufferedIOBase) -> int | None:
    """Where the digest begins in a file: the last that its footer has; None if there is none."""
    size = stream.seek(0, os.SEEK_END)
    stream.seek(max(0, size - _ENDING))
    length = int.from_bytes(stream.read(4), "little") + _ENDING
    if size < _ENDING or length > size:
        return None
    stream.seek(size - length)
    found = stream.read(length).rfind(SIGN)
    place = size - length + found + len(SIGN)
    return None if found < 0 or place + 64 > size else place


def _digest(stream: io.BufferedIOBase, place: int, name: str) -> bytes:
    """The digest of the name and of all bytes but the digest's own."""
    total = sha256(f"{name}\n{place}\n".encode(errors="surrogatepass"))
    stream.seek(0)
    for chunk in _chunks(stream, place):
        total.update(chunk)
    stream.seek(place + 64)
    for chunk in _chunks(stream, None):
        total.update(chunk)
    return total.hexdigest().encode()


def _chunks(stream: io.BufferedIOBase, left: int | None) -> Iterator[bytes]:
    while chunk := stream.read(_CHUNK if left is None else min(_CHUNK, left)):
        left = None if left is None else left - len(chunk)
        yield chunk


def read_json(path: Path) -> Any:
    """What a file of ours says; None if there is none, and one kind of error for what is wrong."""
    try:
        if path.exists() and not path.is_file():
            raise ValueError("it is no plain file")
        return json.loads(path.read_text(encoding="utf-8"))
    except (FileNotFoundError, NotADirectoryError):
        return None
    except (OSError, ValueError, RecursionError) as error:
        reason = " ".join(str(error).split())[:200]
        raise ResultFileError(f"{str(path)!r} cannot be read: {reason}") from error


def difference(there: Any, here: Any) -> str:
    """The first setting that differs, in words; empty if none does."""
    differs = first_difference(there, here)
    if differs is None:
        return ""
    name, before, now = differs
    return f"{name} is {_shown(before)} there and {_shown(now)} here"


def first_difference(there: Any, here: Any, name: str = "") -> tuple[str, Any, Any] | None:
    """The name of the first setting that differs, and both values."""
    before, now = _members(there), _members(here)
    if before is None or now is None or type(there) is not type(here):
        return None if there == here else (name or "all", there, here)
    for key in dict.fromkeys([*now, *before]):
        inner = f"{name}.{key}" if name else str(key)
        pair = before.get(key, _MISSING), now.get(key, _MISSING)
        if (difference := first_difference(*pair, inner)) is not None:
            return difference
    return None


def _members(value: Any) -> dict[Any, Any] | None:
    if isinstance(value, list):
        return dict(enumerate(value, 1))
    return value if isinstance(value, dict) else None


def _shown(value: Any) -> str:
    text = value if value == _MISSING else json.dumps(value, ensure_ascii=False)
    return text if len(text) <= 60 else f"{text[:59]}…"


def make_folder(path: Path) -> None:
    """Make a folder, if it is not there."""
    refuse_address(path)
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise UsageError(f"{path} cannot be a folder: a file of that name exists") from error
    except OSError as error:
        raise ResultFileError(f"cannot make the folder {str(path)!r}: {error.strerror}") from error
    except ValueError as error:  # a NUL, or signs that no file name has
        raise UsageError(f"{str(path)!r} cannot be a folder: {error}") from error
