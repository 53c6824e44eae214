"""Checkpoints of the Trainer, sealed with digests: a damaged one is not gone on from."""

import json
from hashlib import file_digest
from pathlib import Path
from typing import Any

from transformers import TrainerCallback

from attlas.views import write_whole

STATE, SEAL = "trainer_state.json", "digests.json"


class Sealing(TrainerCallback):  # type: ignore[misc]
    """Seals each checkpoint as soon as it is written."""

    def on_save(self, args: Any, state: Any, control: Any, **_: Any) -> None:
        """Write the digests of the files of the newest checkpoint."""
        folder = Path(args.output_dir) / f"checkpoint-{state.global_step}"
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
