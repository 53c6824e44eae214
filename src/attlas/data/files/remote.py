"""Files at an address such as s3://bucket/reviews.parquet, opened by fsspec."""

import re
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import PurePosixPath
from typing import Any, TypeVar

from attlas.errors import UsageError, first_line, in_short

_ADDRESS = re.compile(r"[a-z][a-z0-9+.-]+://", re.IGNORECASE)
Found = TypeVar("Found")


def is_address(name: str) -> bool:
    """Whether a name is the address of a file or folder, and no path."""
    return _ADDRESS.match(name) is not None


@dataclass(frozen=True)
class RemoteFile:
    """A file at an address; it has what readers ask of a path."""

    address: str

    def __str__(self) -> str:
        return self.address

    @property
    def suffix(self) -> str:
        """The end of its name, with the dot."""
        return PurePosixPath(self.address).suffix

    @property
    def stem(self) -> str:
        """Its name without that end."""
        return PurePosixPath(self.address).stem

    def open(self, mode: str = "rb") -> Any:
        """Open it to read bytes."""
        import fsspec

        return asked(self.address, lambda: fsspec.open(self.address, mode).open())


def remote_files(address: str) -> tuple[list[str], bool]:
    """The addresses of the files in a folder or of a pattern, and whether it is one of these."""
    import fsspec

    def look() -> tuple[list[str], bool]:
        system, path = fsspec.core.url_to_fs(address)
        if any(sign in path for sign in "*?["):
            return sorted(map(system.unstrip_protocol, system.glob(path))), True
        if system.isdir(path):
            return sorted(map(system.unstrip_protocol, system.find(path))), True
        return [address], False

    return asked(address, look)


def asked(address: str, work: Callable[[], Found]) -> Found:
    """What fsspec answers; whatever it cannot do is one clear line."""
    try:
        return work()
    except FileNotFoundError as problem:
        raise UsageError(f"there is no file {in_short(address, 300)}") from problem
    except Exception as problem:  # each kind of store has errors of its own
        reason: Any = getattr(problem, "strerror", None) or first_line(problem)
        raise UsageError(f"{in_short(address, 300)} cannot be opened: {reason}") from problem
