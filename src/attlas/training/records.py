"""What a training leaves: the model, the record of its figures, its checkpoints, how far it is."""

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass
from hashlib import file_digest
from pathlib import Path
from time import monotonic
from typing import Any

from attlas.errors import UsageError
from attlas.models.subject import Subject
from attlas.progress import Step, Watch
from attlas.results.support.lock import is_lock, locked
from attlas.results.support.tables import make_folder, read_json
from attlas.views import write_whole

RECORD, LOCK = "training.json", "training.lock"
STATE, SEAL = "trainer_state.json", "digests.json"  # in a checkpoint of the Trainer
# The names of what a training writes that others may have written too.
WRITTEN = (
    *("config.json", "model.safetensors", "tokenizer.json", "tokenizer_config.json"),
    *("checkpoints", "training.safetensors"),
)


@dataclass(frozen=True, eq=False)
class Trained:
    """A trained model, and the figures of its training."""

    subject: Subject
    record: dict[str, Any]  # what was trained on what and how, and the figures of each epoch

    @property
    def test(self) -> dict[str, float]:
        """The figures on the test texts; empty if there are none."""
        found: dict[str, float] = self.record["test"]
        return found

    def lines(self) -> list[str]:
        """The figures as lines: each epoch, then the test texts."""
        kept, found = self.record["best"], []
        for number, figures in enumerate(self.record["epochs"]):
            mark = "  (kept)" if number == kept else ""
            found.append(f"epoch {number + 1}: dev {_shown(figures)}{mark}")
        if self.test:
            found.append(f"test ({self.record['texts']['test']} texts): {_shown(self.test)}")
        return [*self.record["notes"], *found]


def _shown(figures: dict[str, float]) -> str:
    return ", ".join(f"{name} {value:.3f}" for name, value in figures.items())


@contextmanager
def held_folder(folder: Path) -> Iterator[None]:
    """The folder of a training, made if it is not there, and locked within the block.

    What no training wrote is never overwritten. The lock of a training that was stopped stays, so
    that what is there is known to be its own.
    """
    make_folder(folder)
    is_ours = is_lock(folder / LOCK) or _record_of(folder) is not None
    there = [] if is_ours else [each for each in WRITTEN if os.path.lexists(folder / each)]
    if there:
        raise UsageError(
            f"{folder / there[0]} exists, but no training wrote it: use another folder"
        )
    with locked(folder / LOCK):
        yield


def finished(folder: Path, plan: dict[str, Any]) -> dict[str, Any] | None:
    """The record of the same training, if it is over; another one in the folder is an error."""
    record = _record_of(folder)
    if record is not None and record["plan"] != json.loads(json.dumps(plan)):
        raise UsageError(f"{folder} holds another training: choose another folder, or remove it")
    return record


def write_record(folder: Path, record: dict[str, Any]) -> None:
    """Write the record that says that a training is over."""
    write_whole(folder / RECORD, json.dumps(record, indent=1))


def _record_of(folder: Path) -> dict[str, Any] | None:
    record: Any = read_json(folder / RECORD)
    if record is not None and not (isinstance(record, dict) and "plan" in record):
        raise UsageError(f"{folder / RECORD} exists, but no training wrote it: use another folder")
    return record


def teller(watch: Watch | None) -> Any:
    """Tell a watcher how far the training is, with an estimate of what is left."""
    begun: list[tuple[float, int]] = []

    def tell(what: str, done: int, total: int) -> None:
        if watch is None:
            return
        begun.append((monotonic(), done)) if not begun else None
        passed, gone = monotonic() - begun[0][0], done - begun[0][1]
        left = passed / gone * (total - done) if gone else None
        watch(Step(what, done, total, left))

    return tell


def seal_checkpoint(folder: Path) -> None:
    """Write the digests of the files of a checkpoint of the Trainer beside them."""
    if folder.is_dir():
        write_whole(folder / SEAL, json.dumps(_digests(folder)))


def last_checkpoint(folder: Path) -> str | None:
    """The newest checkpoint that is whole, and whose best one is whole too."""
    whole = {each.parent.name: each.parent for each in folder.glob(f"checkpoint-*/{STATE}")}
    whole = {name: each for name, each in whole.items() if _is_whole(each)}
    usable = [each for each in whole.values() if _best_of(each) in (None, *whole)]
    newest = max(usable, key=lambda each: int(each.name.rpartition("-")[2]), default=None)
    return None if newest is None else str(newest)


def _is_whole(folder: Path) -> bool:
    """Whether a checkpoint was written to its end, the state last, and is what was written.

    One without a seal was written to its end just before the training was stopped.
    """
    try:
        json.loads((folder / STATE).read_text("utf-8"))
        seal = folder / SEAL
        return not seal.exists() or json.loads(seal.read_text("utf-8")) == _digests(folder)
    except (OSError, ValueError):
        return False


def _best_of(folder: Path) -> str | None:
    best = json.loads((folder / STATE).read_text("utf-8")).get("best_model_checkpoint")
    return None if best is None else Path(best).name


def _digests(folder: Path) -> dict[str, str]:
    found = {}
    for path in sorted(folder.iterdir()):
        if path.is_file() and path.name != SEAL:
            with path.open("rb") as stream:
                found[path.name] = file_digest(stream, "sha256").hexdigest()
    return found
