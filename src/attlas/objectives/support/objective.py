"""What an objective is, and the registry of all objectives."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Any

import torch

from attlas.errors import UnknownNameError, UsageError
from attlas.methods.support.method import checked_options, options_of
from attlas.objectives.support.step import TrainingStep
from attlas.registry import Registry, check_known
from attlas.shapes import BatchScores

NEEDS = {
    "attention": "attention weights that can be read",
    "heads": "two or more heads",
    "marks": "texts with marked words",
    "labels": "one label for each text",
    "keys": "keys that can be changed: attention on transformers' interface",
    "mask": "a mask token, or another that can stand for a removed one",
}
BETWEEN, SEVERAL = ",", "/"


@dataclass(frozen=True)
class Objective:
    """Something that a model is trained for beside its labels: a value for each text, to be low."""

    name: str
    function: Callable[..., BatchScores]
    paper: str  # with its arXiv number; empty if nobody has published it
    reading: str  # one sentence: what a low value says
    does_not_show: str  # one sentence: what must not be concluded from it
    needs: tuple[str, ...] = ()  # keys of NEEDS
    passes: int = 0  # how many more passes of the model a step takes

    def __post_init__(self) -> None:
        check_known("need of an objective", self.needs, NEEDS)

    @property
    def summary(self) -> str:
        """The first line of its docstring."""
        return (self.function.__doc__ or "").strip().splitlines()[0]

    @property
    def options(self) -> Mapping[str, Any]:
        """Its options with their defaults."""
        return options_of(self.function)


_HOME = "attlas.objectives"
OBJECTIVES = Registry("objective", Objective, group=_HOME, package=_HOME)
objective = OBJECTIVES.register


@dataclass(frozen=True)
class Aim:
    """An objective with its weight beside the loss of the labels, and its options."""

    name: str
    weight: float = 1.0
    options: Mapping[str, Any] = field(default_factory=dict)

    def __str__(self) -> str:
        told = {"weight": self.weight, **self.options}
        options = BETWEEN.join(f"{key}={_written(each)}" for key, each in told.items())
        return f"{self.name}:{options}"

    def values(self, step: TrainingStep) -> BatchScores:
        """The objective on each text of a batch, in single precision at least."""
        with torch.autocast(step.labels.device.type, enabled=False):
            return OBJECTIVES[self.name].function(step, **self.options)


def read_aims(given: str | Sequence[str | Aim] | None) -> tuple[Aim, ...]:
    """Read objectives as users write them, such as `rationale:weight=0.5,layer=-1`.

    Of an option with several values these stand behind one another: `layer=-1/-2`. An objective
    with a weight of zero is left out: training without it must be training as ever.
    """
    asked = [given] if isinstance(given, (str, Aim)) else list(given or ())
    aims = [each if isinstance(each, Aim) else _read(each) for each in asked]
    for aim in aims:
        if not aim.weight >= 0 or aim.weight == float("inf"):
            raise UsageError(f"the weight of {aim.name} is 0 or more, not {aim.weight}")
        checked_options(aim.name, OBJECTIVES[aim.name].function, aim.options)
    return tuple(aim for aim in aims if aim.weight)


def _read(written: str) -> Aim:
    name, _, rest = written.partition(":")
    options: dict[str, Any] = {}
    for pair in filter(None, rest.split(BETWEEN)):
        option, equals, value = pair.partition("=")
        if not equals:
            raise UsageError(
                f"options of an objective are NAME=VALUE with commas between, not {pair!r}"
            )
        options[option.strip()] = _value(value.strip())
    weight = options.pop("weight", 1.0)
    if isinstance(weight, bool) or not isinstance(weight, (int, float)):
        raise UsageError(f"the weight of {name} is a number, not {weight!r}")
    return Aim(OBJECTIVES[name.strip()].name, float(weight), options)


def _value(written: str) -> Any:
    if SEVERAL in written:
        return tuple(map(_value, written.split(SEVERAL)))
    if written in ("true", "false"):
        return written == "true"
    for kind in (int, float):
        try:
            return kind(written)
        except ValueError:
            continue
    return written


def _written(value: Any) -> str:
    return SEVERAL.join(map(str, value)) if isinstance(value, tuple) else str(value)


def check_word_of(name: str, option: str, given: str, known: Sequence[str]) -> None:
    """Refuse a word that an option of an objective does not know."""
    if given not in known:
        raise UnknownNameError(f"{option} of {name}", given, known)
