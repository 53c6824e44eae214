"""What a training leaves: the model, the record of its figures, and how far it is."""

import json
from dataclasses import dataclass
from pathlib import Path
from time import monotonic
from typing import Any

from attlas.errors import UsageError
from attlas.models.subject import Subject
from attlas.progress import Step, Watch

RECORD, LOCK = "training.json", "training.lock"


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


def finished(folder: Path, plan: dict[str, Any]) -> dict[str, Any] | None:
    """The record of the same training, if it is over; another one in the folder is an error."""
    place = folder / RECORD
    if not place.is_file():
        return None
    record: dict[str, Any] = json.loads(place.read_text())
    if record["plan"] != json.loads(json.dumps(plan)):
        raise UsageError(f"{folder} holds another training: choose another folder, or remove it")
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
