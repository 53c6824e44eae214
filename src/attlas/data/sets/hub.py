"""Data sets on the Hugging Face hub, where the `datasets` library is installed."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field
from importlib import import_module

from attlas.data.sets.file_rows import FileRow
from attlas.errors import UsageError


@dataclass(frozen=True)
class Hub:
    """The address of a set on the hub, and the names of its splits and columns there."""

    path: str
    config: str | None = None
    columns: Mapping[str, str] = field(default_factory=dict)
    dev: str = "validation"


def glue(config: str, first: str, second: str | None = None, dev: str = "validation") -> Hub:
    """Give the address of one task of GLUE, with the columns of its texts."""
    columns = {first: "text_a", second: "text_b"} if second else {first: "text"}
    return Hub("nyu-mll/glue", config, columns, dev)


def hub_installed() -> bool:
    """Whether the `datasets` library is installed."""
    try:
        import_module("datasets")
    except ImportError:
        return False
    return True


def hub_rows(hub: Hub, split: str) -> Iterator[FileRow]:
    """Read one split, with its columns renamed as in the files of ATTLAS_DATA."""
    try:
        records = import_module("datasets").load_dataset(
            hub.path, hub.config, split=hub.dev if split == "dev" else split
        )
    except (OSError, ValueError) as error:
        raise UsageError(f"the hub did not give {hub.path}, {split}: {error}") from error
    for number, record in enumerate(records, 1):
        renamed = {hub.columns.get(key, key): value for key, value in record.items()}
        yield FileRow(f"{hub.path}, {split}, row {number}", renamed)
