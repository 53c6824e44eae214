"""Several models of one kind, one for each seed of their training: where they are, and figures."""

import json
from collections.abc import Sequence
from hashlib import sha256
from pathlib import Path
from typing import Any

from attlas.results.support.report_sections import Figure
from attlas.studies.support.findings import known_means, over_seeds, over_texts

CONFIGURATION = "config.json"  # in the folder of a model
TRAINING = "training.json"  # beside it, from scripts/fine_tune.py


def models_at(name: str) -> list[str]:
    """The models in a folder that holds folders of models, in the order of their names.

    What is no such folder is a model itself: a built-in name, or a folder with its configuration.
    Where only the record of a training is left, parts of a study that are kept name its model.
    """
    folder = Path(name)
    if not folder.is_dir() or _is_model(folder):
        return [name]
    inside = sorted(each for each in folder.iterdir() if _is_model(each))
    return [each.as_posix() for each in inside] or [name]


def named(model: str) -> str:
    """A model as parts of a study name it: trained again, it is another one."""
    path = Path(model) / TRAINING
    record = json.loads(path.read_text("utf-8")) if path.is_file() else {}
    weights = record.get("weights") or record.get("files", {}).get("model.safetensors")
    weights = weights or weights_of(path.parent)
    return f"{model} of weights {weights}" if weights else model


def weights_of(folder: Path) -> str | None:
    """What tells the weights in a folder from those of another training; None without any."""
    files = sorted(folder.glob("*.safetensors"))
    whole = sha256(b"".join(each.read_bytes() for each in files))
    return whole.hexdigest()[:12] if files else None


def _is_model(folder: Path) -> bool:
    return any((folder / name).is_file() for name in (CONFIGURATION, TRAINING))


def described(models: Sequence[str]) -> str:
    """Which models there are, and how good, where their training left a record."""
    paths = [Path(each) / TRAINING for each in models]
    records = [json.loads(path.read_text("utf-8")) for path in paths if path.is_file()]
    records = [each for each in records if each.keys() >= {"dev accuracy", "base", "task", "steps"}]
    told = f"Models: {', '.join(models)}."
    if records:
        right = [float(each["dev accuracy"]) for each in records]
        first = records[0]
        told += (
            f" They are {first['base']}, fine-tuned on {first['task']} in {first['steps']} steps; "
            f"accuracy on its dev texts {min(right):.3f} to {max(right):.3f}."
        )
    return told


def over_models(values: Sequence[Any]) -> Figure:
    """The mean of one value for each text of each model, `[model][text]`.

    The interval is over models where there are several, else over the texts of the one.
    """
    if len(values) == 1:
        return over_texts(values[0])
    return over_seeds([float(known_means([[x] for x in each])[0]) for each in values])


def what_varies(values: Sequence[Any]) -> str:
    """What such an interval is over, in words."""
    return "texts" if len(values) == 1 else "models"
