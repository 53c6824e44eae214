"""Parquet files that say whether they are whole, and settings that say how they differ."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pyarrow as pa
from pyarrow import parquet

from attlas.errors import ResultFileError, UsageError
from attlas.results.support.files import plain

DETAILS = b"attlas"  # the key of the details among the metadata of a Parquet file
_MISSING = "not given"


def pack_table(table: pa.Table, details: Mapping[str, Any]) -> bytes:
    """A Parquet file with checksums that holds the details too."""
    sink = pa.BufferOutputStream()
    detailed = table.replace_schema_metadata(metadata_with(table.schema, details))
    parquet.write_table(detailed, sink, write_page_checksum=True)
    return bytes(sink.getvalue())


def metadata_with(schema: pa.Schema, details: Mapping[str, Any]) -> dict[bytes, bytes]:
    """The metadata of a table with the details among them."""
    encoded = json.dumps(plain(details), allow_nan=False).encode()
    return {**(schema.metadata or {}), DETAILS: encoded}


def unpack_table(path: Path) -> tuple[pa.Table, dict[str, Any]]:
    """The table and the details in a file; one kind of error for whatever is wrong with it."""
    try:
        table = parquet.ParquetFile(path, page_checksum_verification=True).read(use_threads=False)
        return table, dict(json.loads(table.schema.metadata[DETAILS]))
    except (OSError, pa.ArrowException, KeyError, TypeError, ValueError) as error:
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
    try:
        path.mkdir(parents=True, exist_ok=True)
    except (FileExistsError, NotADirectoryError) as error:
        raise UsageError(f"{path} cannot be a folder: a file of that name exists") from error
    except OSError as error:
        raise ResultFileError(f"cannot make the folder {str(path)!r}: {error.strerror}") from error
