"""Records within records, from the JSON that they were written as."""

from collections.abc import Mapping
from dataclasses import MISSING, fields, is_dataclass
from types import UnionType
from typing import Any, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")


def rebuild(kind: type[T], record: Mapping[str, Any]) -> T:
    """A dataclass from what `plain(asdict(...))` gave: tuples are tuples again, records records.

    A field that has a default may be missing: records are older than some of their fields.
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
