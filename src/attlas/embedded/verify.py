"""The verb `verify`: measures on this machine what the cards of the built-in models promise."""

from collections.abc import Mapping
from dataclasses import dataclass
from importlib import import_module
from importlib.resources import files
from typing import Any

from attlas.models.load import embedded_names, load


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
    subject = load(name)
    folder = files("attlas.embedded").joinpath(name)
    text = folder.joinpath("CARD.md").read_text(encoding="utf-8")
    paragraphs = [each.strip() for each in text.split("\n\n") if not each.startswith("#")]
    last = {site.kind: site for site in subject.sites}
    size = sum(len(item.read_bytes()) for item in folder.iterdir() if item.is_file())
    return Card(
        name,
        subject.task.name if subject.task else "",
        ", ".join(f"{site.layer + 1} {kind} × {site.heads}" for kind, site in last.items()),
        size / 2**20,
        " ".join(paragraphs[0].replace("`", "").split()).split(". ")[0].rstrip("."),
        text,
    )
