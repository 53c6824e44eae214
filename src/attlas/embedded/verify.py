"""The cards of the built-in models, and the verb `verify`, which measures what they promise.

Cards are read from their folders; torch is imported only to verify.
"""

import json
from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.resources import files
from typing import Any

from attlas.models.facts.places import embedded_names

TASKS = {
    "ForSequenceClassification": "sequence classification",
    "ForCausalLM": "causal lm",
    "ForConditionalGeneration": "sequence to sequence",
}


@dataclass(frozen=True)
class Card:
    """A built-in model: what it is for, its shape and its size on disk."""

    name: str
    task: str
    sites: str
    megabytes: float
    about: str
    text: str  # the whole card


@dataclass(frozen=True)
class Verified:
    """The figures of one model, and their smallest and largest allowed values."""

    name: str
    figures: Mapping[str, float]
    minimum: Mapping[str, float]
    maximum: Mapping[str, float]

    @property
    def passed(self) -> bool:
        """Whether every figure that was measured is within its limits."""
        known = [name for name in self.minimum if name in self.figures]
        large_enough = all(self.figures[name] >= self.minimum[name] for name in known)
        return (
            bool(known)
            and large_enough
            and all(self.figures[name] <= most for name, most in self.maximum.items())
        )


def cards() -> list[Card]:
    """The cards of all built-in models."""
    return [_card(name) for name in embedded_names()]


def verify(name: str, count: int = 200, seed: int = 1) -> Verified:
    """Measure a model on held-out data, and test by substitution what its answers rest on."""
    from attlas.models.load import load

    subject = load(name)
    module: Any = import_module(f"attlas.embedded.checks.{_checked_by(name)}")
    figures = module.verify(subject, count=count, seed=seed)
    least = {**module.MINIMUM, **getattr(module, "MINIMUM_SWAPPING", {})}
    most = {}
    if name == "shortcut_deceptive":
        most = {figure: module.MAXIMUM_MASS for figure in figures if "mass" in figure}
    return Verified(name, figures, least, most)


def _checked_by(name: str) -> str:
    family = {"dates_plain": "dates"}.get(name, name)
    return f"verify_{'shortcuts' if family.startswith('shortcut') else family}"


def _card(name: str) -> Card:
    folder = files("attlas.embedded").joinpath(name)
    text = folder.joinpath("CARD.md").read_text(encoding="utf-8")
    paragraphs = [each.strip() for each in text.split("\n\n") if not each.startswith("#")]
    config = json.loads(folder.joinpath("config.json").read_text(encoding="utf-8"))
    size = sum(len(item.read_bytes()) for item in folder.iterdir() if item.is_file())
    (model_class,) = config["architectures"]
    (task,) = (task for ending, task in TASKS.items() if model_class.endswith(ending))
    return Card(
        name,
        task,
        _sites(config, task),
        size / 2**20,
        " ".join(paragraphs[0].replace("`", "").split()).split(". ")[0].rstrip("."),
        text,
    )


def _sites(config: Mapping[str, Any], task: str) -> str:
    """Where there is attention: layers and heads of each kind."""
    if task == "sequence to sequence":
        kinds = [("encoder", "encoder"), ("decoder", "decoder"), ("cross", "decoder")]
        known = [
            (kind, config[f"{part}_layers"], config[f"{part}_attention_heads"])
            for kind, part in kinds
        ]
    else:
        kind = "decoder" if task == "causal lm" else "encoder"
        known = [(kind, config["num_hidden_layers"], config["num_attention_heads"])]
    return ", ".join(f"{layers} {kind} × {heads}" for kind, layers, heads in known if layers)
