"""A registry: parts by name, with the nearest name when one is not there."""

from collections.abc import Iterator
from typing import Generic, TypeVar

from attlas.errors import UnknownNameError

Part = TypeVar("Part")


class Registry(Generic[Part]):
    """Parts of one kind, by the name that is also their file, function and command-line word."""

    def __init__(self, kind: str) -> None:
        self.kind = kind
        self._parts: dict[str, Part] = {}

    def add(self, name: str, part: Part) -> None:
        """Register `part`; a name can be given once."""
        if name in self._parts:
            raise ValueError(f"the {self.kind} {name!r} is registered already")
        self._parts[name] = part

    def __getitem__(self, name: str) -> Part:
        """Find a part; hyphens and underscores are the same."""
        found = self._parts.get(name.replace("-", "_"))
        if found is None:
            raise UnknownNameError(self.kind, name, self._parts)
        return found

    def __iter__(self) -> Iterator[Part]:
        return iter(self._parts.values())

    def __len__(self) -> int:
        return len(self._parts)

    def names(self) -> list[str]:
        """All names, in the order of registration."""
        return list(self._parts)
