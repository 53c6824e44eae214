"""Results on disk: one safetensors file with a JSON header. Reading it never runs code from it."""

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager
from dataclasses import MISSING, fields, is_dataclass
from hashlib import sha256
from math import isfinite
from os import PathLike, fspath
from pathlib import Path
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

import numpy as np
from safetensors import SafetensorError, safe_open
from safetensors.numpy import save

from attlas.errors import ResultFileError
from attlas.views.files import write_whole

T = TypeVar("T")
FORMAT = 1
_PLAIN = {str, int, bool, type(None)}
_UNREADABLE = (
    SafetensorError,
    ArithmeticError,
    AssertionError,
    AttributeError,
    IndexError,
    KeyError,
    OSError,
    RecursionError,
    TypeError,
    ValueError,
)


def write_record(
    path: str | PathLike[str], kind: str, header: Mapping[str, Any], arrays: Mapping[str, Any]
) -> Path:
    """Write a record; a failure leaves no half-written file."""
    try:
        text = json.dumps({"format": FORMAT, "kind": kind, **header}, allow_nan=False)
        tensors = {name: np.ascontiguousarray(array) for name, array in arrays.items()}
        data = save(tensors, metadata={"attlas": text, "digest": _digest(text, tensors)})
    except _UNREADABLE as problem:
        raise ResultFileError(f"cannot write {fspath(path)!r}: {_one_line(problem)}") from problem
    return write_whole(path, data)


@contextmanager
def read_record(
    path: str | PathLike[str], kind: str
) -> Iterator[tuple[dict[str, Any], dict[str, Any]]]:
    """The header and the arrays of a record of this kind; every problem is a ResultFileError."""
    name = repr(fspath(path))
    header, arrays, whole = _parse(path, name)
    saved_kind, number = header.get("kind"), header.get("format")
    if number != FORMAT:
        raise ResultFileError(
            f"{name} has format {number!r}; this version of Attlas reads {FORMAT}"
        )
    if not whole:
        raise ResultFileError(f"{name} is damaged: its content is not what was written")
    if saved_kind != kind:
        raise ResultFileError(f"{name} holds {saved_kind!r}, not {kind!r}")
    try:
        yield header, arrays
    except _UNREADABLE as problem:
        reason = f"{type(problem).__name__}: {_one_line(problem)}"
        raise ResultFileError(f"{name} is damaged: {reason}") from problem


def _parse(path: str | PathLike[str], name: str) -> tuple[dict[str, Any], dict[str, Any], bool]:
    """The header, the arrays, and whether they match the digest."""
    try:
        text, digest, arrays = _read(path)
        return dict(json.loads(text)), arrays, digest == _digest(text, arrays)
    except FileNotFoundError as problem:
        raise ResultFileError(f"there is no file {name}") from problem
    except _UNREADABLE as problem:
        reason = _one_line(problem)
        raise ResultFileError(f"{name} cannot be read as an Attlas result: {reason}") from problem


def plain(value: Any) -> Any:
    """The value in types that JSON keeps: lists for tuples, Python numbers for numpy's.

    What JSON cannot hold, such as infinity, becomes a string.
    """
    if type(value) in _PLAIN:  # most values are, and asking for no more is faster
        return value
    if type(value) is float:
        return value if isfinite(value) else str(value)
    if type(value) is dict:
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, (np.ndarray, np.generic)):
        return plain(value.tolist())
    if isinstance(value, Mapping):
        return {str(key): plain(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return list(value) if set(map(type, value)) <= _PLAIN else [plain(each) for each in value]
    if value is None or isinstance(value, (str, int)):
        return value
    return value if isinstance(value, float) and isfinite(value) else str(value)


def digest_of(value: Any) -> str:
    """A digest of what JSON can hold, whatever the order of its keys."""
    text = json.dumps(value, sort_keys=True)
    return sha256(text.encode()).hexdigest()


def rebuild(kind: type[T], record: Mapping[str, Any]) -> T:
    """Rebuild a dataclass, with its tuples and nested dataclasses, from `plain(asdict(...))`.

    A field with a default may be missing, since older files lack newer fields.
    """
    hints = get_type_hints(kind)
    given = {
        each.name: _value(hints[each.name], record[each.name])
        for each in fields(kind)  # type: ignore[arg-type]
        if each.name in record or (each.default is MISSING and each.default_factory is MISSING)
    }
    return kind(**given)


def _value(hint: Any, given: Any) -> Any:
    if is_dataclass(hint) and isinstance(hint, type):
        return rebuild(hint, given)
    origin, inner = get_origin(hint), get_args(hint)
    if origin in (Union, UnionType) and given is not None:
        records = [each for each in inner if is_dataclass(each) or get_origin(each) is tuple]
        return _value(records[0], given) if records else given
    if origin is tuple:
        kinds = [inner[0]] * len(given) if inner[-1] is Ellipsis else inner
        return tuple(_value(each, part) for each, part in zip(kinds, given, strict=True))
    if origin is Mapping and given is not None:
        return {key: _value(inner[1], each) for key, each in given.items()}
    return given


def _read(path: str | PathLike[str]) -> tuple[str, str, dict[str, Any]]:
    with safe_open(path, framework="numpy") as file:
        metadata = file.metadata() or {}
        if "attlas" not in metadata:
            raise ValueError("it has no header of Attlas")
        arrays = {name: file.get_tensor(name) for name in file.keys()}  # noqa: SIM118
        return metadata["attlas"], metadata.get("digest", ""), arrays


def _digest(text: str, arrays: Mapping[str, Any]) -> str:
    total = sha256(text.encode())
    for name, array in sorted(arrays.items()):
        total.update(f"{name} {array.dtype.str} {array.shape}".encode())
        total.update(array.tobytes())
    return total.hexdigest()


def _one_line(problem: BaseException) -> str:
    return " ".join(str(problem).split())[:200]
