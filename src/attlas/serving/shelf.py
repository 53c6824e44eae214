"""The models that the operator named, each under a short key; nothing else is ever loaded."""

import threading
from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import PurePath
from typing import Any

from attlas.catalogue import BEST_METHODS, FAMILIES, REMOVALS
from attlas.data import texts
from attlas.embedded.verify import cards
from attlas.errors import AttlasError, ModelError
from attlas.heads.rankings import RANKINGS
from attlas.methods import METHODS
from attlas.models.facts.places import embedded_names
from attlas.models.load import DEFAULT, load
from attlas.models.subject import Subject
from attlas.serving.errors import NoSuchThing
from attlas.serving.settings import Limits

DATA = {  # the texts that each built-in model was made for
    "sentiment": ("reviews", "reviews_hard"),
    "dates": ("dates",),
    "dates_plain": ("dates",),
    "facts": ("facts",),
    "recall": ("recall",),
    "shortcut_token": ("shortcuts",),
    "shortcut_deceptive": ("shortcuts",),
}
EXAMPLES = 6
TAKES = {
    "image classification": "picture",
    "image and text": "picture and text",
    "visual question answering": "picture and text",
    "question answering": "pair",
    "next sentence": "pair",
    "similarity": "pair",
    "causal lm": "prompt",
}


@dataclass(frozen=True, eq=False)
class ShelvedModel:
    """One model of the operator's: its key, and what he typed."""

    key: str
    name: str

    @cached_property
    def subject(self) -> Subject:
        """The model; it is loaded once."""
        return load(self.name)


class Shelf:
    """All models that may be asked, by key."""

    def __init__(self, names: Sequence[str] = ()) -> None:
        self._lock = threading.Lock()
        self.entries: dict[str, ShelvedModel] = {}
        for name in names or _embedded():
            key = _free(PurePath(name).name or name, self.entries)
            self.entries[key] = ShelvedModel(key, name)

    def entry(self, key: str) -> ShelvedModel:
        """What stands under this key; an unknown one is an error."""
        if key not in self.entries:
            raise NoSuchThing(f"there is no model {key!r}; there are: {', '.join(self.entries)}")
        return self.entries[key]

    def subject(self, key: str) -> Subject:
        """The model of this key."""
        entry = self.entry(key)
        with self._lock:  # the first request loads it, and others wait
            return entry.subject

    def described(self, limits: Limits) -> dict[str, Any]:
        """Everything that a page needs to know before its first question."""
        return {
            "models": [self._described(each) for each in self.entries.values()],
            "methods": [_method(each) for each in METHODS],
            "rankings": RANKINGS.names(),
            "removals": list(REMOVALS),
            "actions": ["zero", "scale", "uniform", "shuffle", "replace"],
            "default": {"model": next(iter(self.entries)), "method": BEST_METHODS[0]},
            "limits": limits.to_dict(),
        }

    def data(self, key: str) -> tuple[str, ...]:
        """The names of the texts that jobs on this model may use."""
        name = self.entries[key].name
        if name in DATA:
            return DATA[name]
        labels = {label.upper() for label in _labels(self.subject(key))}
        return ("reviews", "reviews_hard") if labels == {"NEGATIVE", "POSITIVE"} else ()

    def _described(self, entry: ShelvedModel) -> dict[str, Any]:
        about = {card.name: card.about for card in cards()}.get(entry.name, "")
        known = {"key": entry.key, "name": entry.name, "about": about}
        try:
            return known | self._facts(self.subject(entry.key), entry.key)
        except (AttlasError, OSError) as problem:
            return known | _nothing(str(problem))

    def _facts(self, subject: Subject, key: str) -> dict[str, Any]:
        task = subject.task.name if subject.task else ""
        takes = "pair" if subject.reads_two_texts or key == "facts" else TAKES.get(task, "text")
        data = self.data(key)
        return {
            "task": task,
            "takes": takes,
            "labels": _labels(subject),
            "sites": [
                {"name": each.name, "kind": each.kind, "layer": each.layer, "heads": each.heads}
                for each in subject.sites
            ],
            "longest": min(subject.max_tokens, 2**30),
            "data": list(data),
            "examples": _examples(data[:1], takes),
            "error": None,
        }


def _nothing(problem: str) -> dict[str, Any]:
    unknown: dict[str, Any] = {"task": "", "takes": "text", "labels": [], "sites": []}
    return unknown | {"longest": 0, "data": [], "examples": [], "error": problem}


def _embedded() -> list[str]:
    names = embedded_names()
    if DEFAULT not in names:
        raise ModelError(f"the built-in model {DEFAULT} is missing")
    return [DEFAULT, *(name for name in names if name != DEFAULT)]


def _free(name: str, taken: Any) -> str:
    number = 2
    key = name
    while key in taken:
        key, number = f"{name}-{number}", number + 1
    return key


def _labels(subject: Subject) -> list[str]:
    has_classes = subject.task is not None and "classification" in subject.task.name
    return subject.labels if has_classes else []


def _examples(data: Sequence[str], takes: str) -> list[dict[str, str]]:
    found = [each.text for name in data for each in texts(name, count=EXAMPLES)]
    if takes == "pair":
        return [{"text": one, "pair": other} for one, other in found]
    return [{"text": text} for text in found if isinstance(text, str)]


def _method(method: Any) -> dict[str, Any]:
    return {
        "name": method.name,
        "family": method.family,
        "family_name": FAMILIES[method.family],
        "signed": method.signed,
        "maps": method.maps,
        "cost": method.cost,
        "summary": method.summary,
        "reading": method.reading,
        "paper": method.paper,
    }
