"""Data sets of the Hugging Face hub, where the `datasets` library is installed."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module

from attlas.data.sets.rows import Row
from attlas.errors import UsageError


@dataclass(frozen=True)
class Hub:
    """Where a set is on the hub, and what its splits and columns are called there."""

    path: str
    config: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    dev: str = "validation"


def glue(config: str, first: str, second: str | None = None, dev: str = "validation") -> Hub:
    """One task of GLUE: its name and its columns."""
    columns = {first: "text_a", second: "text_b"} if second else {first: "text"}
    return Hub("nyu-mll/glue", config, columns, dev)


def hub_installed() -> bool:
    """Whether the `datasets` library is there."""
    try:
        import_module("datasets")
    except ImportError:
        return False
    return True


def hub_rows(hub: Hub, split: str) -> Iterator[Row]:
    """The records of one split, with columns named as in our files."""
    try:
        found = import_module("datasets").load_dataset(
            hub.path, hub.config, split=hub.dev if split == "dev" else split
        )
    except (OSError, ValueError) as error:
        raise UsageError(f"the hub did not give {hub.path}, {split}: {error}") from error
    for number, record in enumerate(found, 1):
        renamed = {hub.columns.get(key, key): value for key, value in record.items()}
        yield Row(f"{hub.path}, {split}, row {number}", renamed)
