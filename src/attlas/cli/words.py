"""The words of a command again, to start another process with."""

from collections.abc import Iterator, Mapping
from typing import Any


def words(given: Mapping[str, Any]) -> list[str]:
    """Options with what they were set to, by the names of the command's parameters."""
    return [word for name, value in given.items() for word in _said(name, value)]


def _said(name: str, value: Any) -> Iterator[str]:
    option = f"--{name.replace('_', '-')}"
    if value is True:
        yield option
    elif isinstance(value, (list, tuple)):
        for each in value:
            yield from (option, str(each))
    elif value is not None and value is not False:
        yield from (option, str(value))
