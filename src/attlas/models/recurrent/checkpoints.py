"""Checkpoints: the state of a training after each epoch, as safetensors and JSON."""

import json
import os
from collections.abc import Mapping
from dataclasses import dataclass, field
from hashlib import sha256
from pathlib import Path
from typing import Any

import torch
from safetensors import SafetensorError, safe_open
from safetensors.torch import load_file, save_file
from torch import Tensor, nn

from attlas.errors import ResultFileError, UsageError, first_line
from attlas.results.support.tables import difference

TENSORS, RECORD = "training.safetensors", "training.json"


@dataclass(frozen=True, eq=False)
class Checkpoint:
    """How far a training is: the epochs done, their figures, and the weights of the best."""

    epoch: int = 0  # how many are done
    best: int = -1
    figures: list[dict[str, float]] = field(default_factory=list)
    best_weights: Mapping[str, Tensor] = field(default_factory=dict)
    notes: tuple[str, ...] = ()  # what whoever started the training should know

    def after(
        self, epoch: int, figures: dict[str, float], by: str, weights: Mapping[str, Tensor]
    ) -> "Checkpoint":
        """The state after one more epoch; the first gives way to any other."""
        best = self.figures[self.best].get(by, 0.0) if self.best > 0 else float("-inf")
        is_best = self.best < 1 or figures.get(by, 0.0) > best
        return Checkpoint(
            epoch + 1,
            epoch if is_best else self.best,
            [*self.figures, figures],
            weights if is_best else self.best_weights,
            self.notes,
        )

    def setbacks(self, by: str) -> int:
        """How many epochs were no better than the best one before them."""
        found, best = 0, float("-inf")
        for each in self.figures:
            found, best = found + (each.get(by, 0.0) <= best), max(best, each.get(by, 0.0))
        return found

    def is_over(self, patience: int | None) -> bool:
        """Whether so many epochs brought nothing better."""
        return patience is not None and self.best > 0 and self.epoch - 1 - self.best >= patience


def write_checkpoint(
    folder: str | Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    plan: Mapping[str, Any],
    state: Checkpoint,
) -> None:
    """Write the state of a training beside its place, and move it there whole."""
    place = Path(folder)
    place.mkdir(parents=True, exist_ok=True)
    tensors = {f"model.{name}": value for name, value in model.state_dict().items()}
    tensors |= {f"best.{name}": value for name, value in state.best_weights.items()}
    tensors |= {
        f"optimizer.{number}.{name}": torch.as_tensor(value)
        for number, slots in optimizer.state_dict()["state"].items()
        for name, value in slots.items()
    }
    record = {"plan": dict(plan), "epoch": state.epoch, "best": state.best}
    record["figures"] = state.figures
    # The record is in the header too: one file is moved, so the two cannot come apart.
    whole = {name: value.detach().cpu().contiguous().clone() for name, value in tensors.items()}
    said = json.dumps(record)
    _move_whole(whole, {"record": said, "digest": _digest(said, whole)}, place / TENSORS)


def _move_whole(tensors: dict[str, Tensor], said: dict[str, str], place: Path) -> None:
    beside = place.with_name(f"{TENSORS}.new")
    try:
        save_file(tensors, beside, metadata=said)
        os.replace(beside, place)
    except (OSError, SafetensorError) as problem:
        beside.unlink(missing_ok=True)
        reason = getattr(problem, "strerror", None) or first_line(problem)
        raise ResultFileError(f"cannot write {str(place)!r}: {reason}") from problem


def read_checkpoint(
    folder: str | Path,
    model: nn.Module,
    optimizer: torch.optim.Optimizer,
    plan: Mapping[str, Any],
) -> Checkpoint:
    """Bring a model and its optimizer to where a training stopped.

    If none was begun there, or if what was written is damaged, it begins anew, and comes to the
    same.
    """
    place = Path(folder) / TENSORS
    if not place.is_file():
        return Checkpoint()
    found = _read_whole(place)
    if found is None:
        return Checkpoint(notes=(f"{place} was damaged: the training began anew",))
    record, tensors = found
    more = {"epochs": plan.get("epochs")}  # a training may be given more of them
    differs = difference({**record["plan"], **more}, json.loads(json.dumps(dict(plan))))
    if differs:
        raise UsageError(
            f"{folder} holds another training: {differs}; choose another folder, or remove it"
        )
    model.load_state_dict(_under("model.", tensors))
    slots: dict[int, dict[str, Tensor]] = {}
    for name, value in _under("optimizer.", tensors).items():
        number, _, slot = name.partition(".")
        slots.setdefault(int(number), {})[slot] = value
    groups = optimizer.state_dict()["param_groups"]
    optimizer.load_state_dict({"state": slots, "param_groups": groups})
    weights = {name: value.clone() for name, value in _under("best.", tensors).items()}
    return Checkpoint(record["epoch"], record["best"], record["figures"], weights)


def _read_whole(place: Path) -> tuple[dict[str, Any], dict[str, Tensor]] | None:
    """What was written, if it is that to the bit."""
    try:
        with safe_open(place, "pt") as file:
            said = file.metadata() or {}
        tensors, record = load_file(place), said["record"]
    except (SafetensorError, OSError, LookupError, ValueError):
        return None
    whole = said.get("digest") == _digest(record, tensors)
    return (json.loads(record), tensors) if whole else None


def _digest(record: str, tensors: Mapping[str, Tensor]) -> str:
    total = sha256(record.encode())
    for name, value in sorted(tensors.items()):
        total.update(f"{name} {value.dtype} {tuple(value.shape)}".encode())
        total.update(value.contiguous().reshape(-1).view(torch.uint8).numpy().data)
    return total.hexdigest()


def _under(prefix: str, tensors: Mapping[str, Tensor]) -> dict[str, Tensor]:
    found = {name: value for name, value in tensors.items() if name.startswith(prefix)}
    return {name.removeprefix(prefix): value for name, value in found.items()}
