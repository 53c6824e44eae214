"""The seal of a model that Attlas trained: digests of its files, in the record beside them."""

import json
from collections.abc import Iterator
from concurrent.futures import ThreadPoolExecutor
from contextlib import contextmanager
from hashlib import file_digest
from pathlib import Path
from typing import Any

from attlas.errors import ModelError
from attlas.results.support.files import digest_of

RECORD, WEIGHTS = "training.json", "model.safetensors"


@contextmanager
def sealed_weights(place: str | Path) -> Iterator[None]:
    """Refuse a model whose weights, which the block loads, are not those that were trained.

    Their digest is taken meanwhile in another thread, which holds no lock of Python's.
    """
    sealed = _sealed(Path(place) / RECORD)
    if sealed is None:
        yield
        return
    with ThreadPoolExecutor(1) as thread:
        found = thread.submit(digest_of_file, Path(place) / WEIGHTS)
        yield
    if found.result() != sealed:
        raise ModelError(
            f"{str(Path(place) / WEIGHTS)!r} is not what the training wrote, by its digest in "
            f"{RECORD}: train again, or remove {RECORD} if you changed the weights"
        )


def digest_of_file(path: Path) -> str | None:
    """The digest of a file; None if it is not there."""
    try:
        with path.open("rb") as stream:
            return file_digest(stream, "sha256").hexdigest()
    except OSError:
        return None


def _sealed(path: Path) -> str | None:
    """The digest of the weights in a record, if it is one of ours and whole."""
    try:
        record: Any = json.loads(path.read_text("utf-8"))
        seal = record.pop("digest")
        return record["files"][WEIGHTS] if seal == digest_of(record) else None
    except (OSError, ValueError, RecursionError, LookupError, TypeError, AttributeError):
        return None
