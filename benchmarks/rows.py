"""The rows of benchmarks in files of JSON: whole at any moment, and none is lost for a new one."""

import hashlib
import json
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from attlas.views.files import write_whole

CODE = Path(__file__).parents[1] / "src" / "attlas"
HERE = ("device", "machine", "versions", "code")  # what a figure depends on, beside its work

Record = dict[str, Any]


def read(path: Path) -> list[Record]:
    return json.loads(path.read_text(encoding="utf-8")) if path.exists() else []


def write(path: Path, rows: Iterable[Record]) -> None:
    """A line for each row."""
    lines = ",\n".join(json.dumps(each, ensure_ascii=False) for each in rows)
    write_whole(path, f"[\n{lines}\n]\n")


def put(path: Path, new: Sequence[Record], names: Sequence[str]) -> None:
    """Write new rows, each in the place of the one that is the same in what these names say."""
    known = {_of(each, names): each for each in [*read(path), *new]}
    write(path, known.values())


def made_here(path: Path, facts: Record) -> list[Record]:
    """The rows that were made by this code on this machine."""
    return [each for each in read(path) if _of(each, HERE) == _of(facts, HERE)]


def code() -> str:
    """A digest of the code that is measured."""
    digest = hashlib.sha256()
    for path in sorted(CODE.rglob("*.py")):
        digest.update(f"{path.relative_to(CODE)}\n".encode() + path.read_bytes())
    return digest.hexdigest()[:12]


def _of(row: Record, names: Sequence[str]) -> str:
    return json.dumps([row.get(name) for name in names], sort_keys=True)
