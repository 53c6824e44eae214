"""What a training leaves: the model, the record of its figures, its checkpoints, how far it is."""

import json
import os
import re
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from dataclasses import dataclass
from errno import ENOSPC
from pathlib import Path
from shutil import disk_usage
from time import monotonic
from typing import Any

from attlas.errors import AttlasError, ModelError, ResultFileError, UsageError, first_line
from attlas.models.loading.sealed import RECORD, WEIGHTS, digest_of_file
from attlas.models.subject import Subject
from attlas.progress import Step, Watch
from attlas.results.support.files import digest_of, plain
from attlas.results.support.lock import is_lock, locked
from attlas.results.support.tables import difference, make_folder, read_json
from attlas.views import write_whole

LOCK = "training.lock"
STATE, SEAL = "trainer_state.json", "digests.json"  # in a checkpoint of the Trainer
FULL = 2**20  # bytes that are free on a disk on which a file could not be ended
_NAME = re.compile(r"checkpoint-[0-9]{1,12}")
# The names of what a training writes that others may have written too.
WRITTEN = (
    *("config.json", WEIGHTS, "tokenizer.json", "tokenizer_config.json"),
    *("checkpoints", "training.safetensors", "training.safetensors.new"),
)
MODEL = ("config.json", WEIGHTS, "tokenizer.json")


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
        raise not_ours(folder / there[0])
    with locked(folder / LOCK):
        yield
        if (folder / RECORD).exists():
            with suppress(OSError):  # what cannot be deleted does no harm
                (folder / LOCK).unlink(missing_ok=True)


def not_ours(place: Path) -> UsageError:
    """What to raise where something is that no training wrote."""
    return UsageError(f"{place} exists, but no training wrote it: use another folder")


def finished(folder: Path, plan: dict[str, Any]) -> dict[str, Any] | None:
    """The record of the same training, if it is over; another one in the folder is an error.

    So is a model that was changed since: the figures are not of it.
    """
    record = _record_of(folder)
    if record is None:
        return None
    refuse_another(folder, record["plan"], plan)
    written = record.pop("files")
    changed = [name for name, digest in written.items() if digest_of_file(folder / name) != digest]
    if changed:
        raise _changed(folder / changed[0])
    return record


def refuse_another(folder: Path, there: Any, here: dict[str, Any]) -> None:
    """Refuse a folder that was begun with another plan; say which setting differs."""
    differs = difference(there, json.loads(json.dumps(here)))
    if differs:
        raise UsageError(
            f"{folder} holds another training: {differs}; choose another folder, or remove it"
        )


def write_record(folder: Path, record: dict[str, Any]) -> None:
    """Write the record that says that a training is over, with digests of the model and of it."""
    there = {name: digest_of_file(folder / name) for name in MODEL if (folder / name).is_file()}
    whole = {**record, "files": there}
    whole["digest"] = digest_of(plain(whole))
    write_whole(folder / RECORD, json.dumps(plain(whole), indent=1))


def _record_of(folder: Path) -> dict[str, Any] | None:
    record: Any = read_json(folder / RECORD)
    if record is not None and not (isinstance(record, dict) and "plan" in record):
        raise not_ours(folder / RECORD)
    if record is not None and record.pop("digest", None) != digest_of(record):
        raise _changed(folder / RECORD)
    return record


def _changed(place: Path) -> ResultFileError:
    return ResultFileError(
        f"{str(place)!r} is not what the training wrote: use another folder, or remove this one"
    )


def check_learned(model: Any) -> None:
    """Refuse a model whose training led to no finite weights: it says nothing."""
    for name, weight in model.named_parameters():
        if not bool(weight.isfinite().all()):
            raise ModelError(f"the training failed: {name} is not finite; try a lower rate")


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


@contextmanager
def writing(folder: Path) -> Iterator[None]:
    """Say in one line why the files of a training cannot be written."""
    try:
        yield
    except AttlasError:
        raise
    except Exception as problem:  # each library raises another kind
        is_full = disk_usage(folder).free < FULL
        reason = os.strerror(ENOSPC) if is_full else first_line(problem)
        raise ResultFileError(
            f"cannot write {str(folder)!r}: {reason}; "
            "asked again, the training goes on from its last whole epoch"
        ) from problem


def seal_checkpoint(folder: Path) -> None:
    """Write the digests of the files of a checkpoint of the Trainer beside them."""
    if folder.is_dir():
        write_whole(folder / SEAL, json.dumps(_digests(folder)))


def last_checkpoint(folder: Path) -> str | None:
    """The newest checkpoint that is whole, and whose best one is whole too."""
    found = [each for each in folder.glob("checkpoint-*") if _NAME.fullmatch(each.name)]
    whole = {each.name: each for each in found if _is_whole(each)}
    usable = [each for each in whole.values() if _best_of(each) in (None, *whole)]
    newest = max(usable, key=lambda each: int(each.name.rpartition("-")[2]), default=None)
    return None if newest is None else str(newest)


def epochs_done(checkpoint: str) -> int:
    """How many epochs of a training are behind a checkpoint of the Trainer."""
    done: float = json.loads((Path(checkpoint) / STATE).read_text("utf-8"))["epoch"]
    return round(done)


def _is_whole(folder: Path) -> bool:
    """Whether a checkpoint was written to its end, the seal last, and is what was written."""
    try:
        said = json.loads((folder / SEAL).read_text("utf-8"))
        return isinstance(said, dict) and STATE in said and said == _digests(folder)
    except (OSError, ValueError, RecursionError):
        return False


def _best_of(folder: Path) -> str | None:
    best = json.loads((folder / STATE).read_text("utf-8")).get("best_model_checkpoint")
    return None if best is None else Path(best).name


def _digests(folder: Path) -> dict[str, str | None]:
    found: dict[str, str | None] = {}
    for path in sorted(folder.iterdir()):
        if path.is_file() and path.name != SEAL:
            found[path.name] = digest_of_file(path)
    return found
