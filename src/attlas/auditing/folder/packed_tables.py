"""A table with some details, as one Parquet file that tells when it is damaged."""

import json
from collections.abc import Mapping
from pathlib import Path
from typing import Any

import pandas as pd
import pyarrow as pa
from pyarrow import parquet

from attlas.errors import ResultFileError
from attlas.results.support.files import plain

_DETAILS = b"attlas"
Part = tuple[pd.DataFrame, dict[str, Any]]


def pack(frame: pd.DataFrame | pa.Table, details: Mapping[str, Any]) -> bytes:
    """The bytes of the file; the index of a frame is not kept."""
    table: Any = frame
    if isinstance(frame, pd.DataFrame):
        table = pa.Table.from_pandas(frame, preserve_index=False)
    said = json.dumps(plain(details), allow_nan=False).encode()
    table = table.replace_schema_metadata({**(table.schema.metadata or {}), _DETAILS: said})
    sink = pa.BufferOutputStream()
    parquet.write_table(table, sink, write_page_checksum=True)
    return bytes(sink.getvalue())


def unpack(path: Path) -> Part:
    """The table and the details; one error for all that can be wrong with the file."""
    try:
        table = parquet.ParquetFile(path, page_checksum_verification=True).read(use_threads=False)
        details = json.loads(table.schema.metadata[_DETAILS])
        return table.to_pandas(use_threads=False), dict(details)
    except (OSError, pa.ArrowException, KeyError, TypeError, ValueError) as error:
        reason = " ".join(str(error).split())[:200]
        raise ResultFileError(f"{str(path)!r} cannot be read: {reason}") from error
