"""Where files are: at an address such as s3://bucket/a.parquet, in a folder, by a pattern."""

import os
import re
from collections.abc import Callable, Collection, Iterator, Sequence
from dataclasses import dataclass, replace
from functools import partial
from glob import glob, has_magic
from pathlib import Path, PurePosixPath
from typing import Any, TypeVar
from urllib.parse import unquote

from attlas.data.files.raw_table import RawTable, TableRow
from attlas.errors import UsageError, first_line, in_short

# One, or a chain of them: zip://inside.csv::s3://bucket/a.zip, simplecache::s3://bucket/a.csv.
_ADDRESS = re.compile(r"([a-z][a-z0-9+.-]*::)*[a-z][a-z0-9+.-]+://", re.IGNORECASE)
# What the `datasets` library writes beside the data that it saves.
_BESIDE = ("dataset_info.json", "dataset_dict.json", "state.json")
Opener = Callable[[Any], RawTable]
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
        return _path_of(self).suffix

    @property
    def stem(self) -> str:
        """Its name without that end."""
        return _path_of(self).stem

    def open(self, mode: str = "rb") -> Any:
        """Open it to read bytes."""
        import fsspec

        return asked(self.address, lambda: fsspec.open(self.address, mode).open())


def _path_of(file: Any) -> PurePosixPath:
    """The name of a file as a path; of a chain, that of the link that says where it is."""
    name = str(file)
    return PurePosixPath(name.split("::")[_own_link(name)] if is_address(name) else name)


def _own_link(address: str) -> int:
    return next(n for n, link in enumerate(address.split("::")) if "://" in link)


def _in_chain(address: str, found: str) -> str:
    """The address of what was found by another one, through the same chain."""
    links = address.split("::")
    links[_own_link(address)] = found
    return "::".join(links)


def remote_files(address: str) -> tuple[list[str], bool]:
    """The addresses of the files in a folder or of a pattern, and whether it is one of these."""
    import fsspec

    def look() -> tuple[list[str], bool]:
        system, path = fsspec.core.url_to_fs(address)
        is_pattern = any(sign in path for sign in "*?[")
        if not is_pattern and not system.isdir(path):
            return [address], False
        paths = system.glob(path) if is_pattern else system.find(path)
        whole = [_in_chain(address, system.unstrip_protocol(each)) for each in paths]
        return sorted(whole), True

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


def several_files(name: str, endings: Collection[str], split: str | None) -> list[Any] | None:
    """The data files of a folder or a pattern, in order; None if this is neither."""
    if is_address(name):
        found, is_several = remote_files(f"{name.rstrip('/')}/{split}" if split else name)
        files: list[Any] = [RemoteFile(each) for each in found]
    else:
        place = Path(os.path.expanduser(name))  # unlike that of Path, for homes of nobody
        is_several = place.is_dir() or (has_magic(name) and not place.exists())
        files = _local(place, split) if is_several else []
    if not is_several:
        return None
    own = [each for each in files if _is_data(str(each), name, endings)]
    if not own:
        raise UsageError(f"{name} has no file of data: allowed: {', '.join(endings)}")
    kinds = sorted({ending_of(each) for each in own})
    if len(kinds) > 1:
        raise UsageError(
            f"{name} has files of several kinds ({', '.join(kinds)}): choose one by a pattern, "
            f"such as {_pattern(name, kinds[0])}"
        )
    return own


def _pattern(name: str, kind: str) -> str:
    """The name of all files of a kind in a folder."""
    own = name.split("::")[_own_link(name)] if is_address(name) else name
    folder, slash, last = own.rpartition("/")
    if last and not has_magic(last):
        folder, slash = own, "/"
    pattern = f"{folder}{slash}*{kind}"
    return _in_chain(name, pattern) if is_address(name) else pattern


def _local(place: Path, split: str | None) -> list[Path]:
    if not place.is_dir():
        if split is not None:
            raise UsageError(f"split={split!r}: a pattern has no splits, a folder may have")
        found = map(Path, glob(str(place), recursive=True))
        return sorted(each for each in found if each.is_file())
    inside = place if split is None else place / split
    if not inside.is_dir():
        known = sorted(each.name for each in place.iterdir() if each.is_dir())
        raise UsageError(
            f"split={split!r}: {place} has no such folder; it has {', '.join(known) or 'none'}"
        )
    return sorted(path for path in inside.rglob("*") if path.is_file())


def _is_data(file: str, name: str, endings: Collection[str]) -> bool:
    """Whether a file is data: not hidden, no note of a writer, of a known kind."""
    path, folder = _path_of(file), f"{_path_of(name)}/"
    own, whole = path.name, str(path)
    inside = PurePosixPath(whole.removeprefix(folder) if whole.startswith(folder) else own).parts
    is_hidden = any(part.startswith((".", "_")) for part in inside)
    return not is_hidden and own not in _BESIDE and ending_of(file) in endings


def ending_of(file: Any) -> str:
    """The kind of a file, by its name; `.gz` is none."""
    path = _path_of(file)
    return (PurePosixPath(path.stem) if path.suffix.lower() == ".gz" else path).suffix.lower()


def several_tables(name: str, files: Sequence[Any], open_one: Opener) -> RawTable:
    """The tables of files as one: the columns of the first, which all others need too."""
    first = open_one(files[0])
    columns = (*first.columns, *(each for each in _folders(files[0]) if each not in first.columns))

    def rows(needed: Collection[str]) -> Iterator[TableRow]:
        for number, file in enumerate(files):
            table = first if number == 0 else open_one(file)
            known = _folders(file)
            missing = [each for each in needed if each not in (*table.columns, *known)]
            if missing and table.columns:
                raise UsageError(f"{file} has no column {missing[0]!r}, though {files[0]} has one")
            own = [each for each in needed if each in table.columns or not table.columns]
            yield from map(partial(_within, file, known), table.rows(own))

    return RawTable(columns, rows)


def _within(file: Any, known: dict[str, str], row: TableRow) -> TableRow:
    """A row with its file as a part of its place, and what the folders say."""
    content = {**known, **row.content} if isinstance(row.content, dict) else row.content
    return replace(row, place=f"{_path_of(file).name}, {row.place}", content=content)


def _folders(file: Any) -> dict[str, str]:
    """Columns that are written as folders: label=positive/part-0.parquet."""
    parts = [part.partition("=") for part in _path_of(file).parts[:-1]]
    return {name: unquote(value) for name, equals, value in parts if name and equals}
