"""Results on disk: one safetensors file, its metadata a JSON header. Nothing in it is ever run."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from attlas.errors import ResultFileError
from attlas.views import write_whole

FORMAT = 1


def write_record(
    path: str | PathLike[str], kind: str, header: Mapping[str, Any], arrays: Mapping[str, Any]
) -> Path:
    """Write a record whole, or not at all."""
    text = json.dumps({"format": FORMAT, "kind": kind, **header}, allow_nan=False)
    tensors = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
    return write_whole(path, save(tensors, metadata={"attlas": text}))


@contextmanager
def read_record(
    path: str | PathLike[str], kind: str
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """The header and the arrays of a record of this kind; one clear error for all that can be wrong."""
    try:
        with safe_open(path, framework="numpy") as file:
            header = json.loads((file.metadata() or {})["attlas"])
            arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
    except FileNotFoundError as problem:
        raise ResultFileError(f"{path} is not there") from problem
    except (SafetensorError, OSError, KeyError, ValueError) as problem:
        raise ResultFileError(f"{path} is damaged or no Attlas result: {problem}") from problem
    if header.get("format") != FORMAT:
        raise ResultFileError(
            f"{path} has format {header.get('format')}; this version of Attlas reads {FORMAT}"
        )
    if header.get("kind") != kind:
        raise ResultFileError(f"{path} holds {header.get('kind')!r}, not {kind!r}")
    try:
        yield header, arrays
    except (KeyError, TypeError, IndexError, ValueError) as problem:
        raise ResultFileError(f"{path} is damaged: {problem!r}") from problem
