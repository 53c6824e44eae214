"""What a trial is, what it returns, and the registry of all trials."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, replace
from inspect import signature
from typing import Any
from zlib import crc32

import numpy as np

from attlas.errors import UsageError
from attlas.methods.support.method import NEEDS as MODEL_NEEDS
from attlas.methods.support.method import checked_options, options_of
from attlas.models.asking.question import Question
from attlas.registry import Registry, check_known
from attlas.shapes import TextValues
from attlas.trials.support.scope import Scope

COSTS = {
    "cheap": "some hundred variants of the attention of each text, most of them in one pass",
    "expensive": "a search for each text, or training",
}
NEEDS = {
    **MODEL_NEEDS,
    "values": "the values that attention mixes, readable apart from its weights",
    "training data": "texts with labels to train on",
    "marks": "words that people have marked",
    "conllu": "sentences with their syntax, in a CoNLL-U file",
}


@dataclass(frozen=True, eq=False)
class TrialOutcome:
    """What a trial found on some texts.

    `figures` hold by name a value for each text, NaN if there is none. `ceilings` hold the largest
    value that a figure of the same name can have: one for all texts, or one for each. `plots` are
    made by `attlas.results.support.plots`.
    """

    figures: Mapping[str, TextValues]
    texts: tuple[int, ...]  # their numbers in the questions
    sentence: str  # what was found, with the main figures
    ceilings: Mapping[str, float | TextValues] = field(default_factory=dict)
    plots: tuple[Mapping[str, Any], ...] = ()
    notes: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)  # anything else, as JSON

    def __post_init__(self) -> None:
        wrong = [name for name, values in self.figures.items() if len(values) != len(self.texts)]
        if wrong:
            raise UsageError(
                f"the figure {wrong[0]!r} needs one value for each of {len(self.texts)} texts"
            )

    def renumbered(self, numbers: Sequence[int]) -> "TrialOutcome":
        """The same with the texts in ascending order, text `n` being called `numbers[n]`."""
        order = np.argsort(self.texts)  # trials return texts in the order of their batches
        return replace(
            self,
            figures={name: values[order] for name, values in self.figures.items()},
            texts=tuple(numbers[self.texts[place]] for place in order),
            ceilings={
                name: most[order] if isinstance(most, np.ndarray) else most
                for name, most in self.ceilings.items()
            },
        )


@dataclass(frozen=True)
class Trial:
    """An experiment on the attention of a model, and what a reader of its figures must know."""

    name: str
    function: Callable[..., TrialOutcome]
    cost: str  # a key of COSTS
    paper: str
    reading: str  # one sentence: what it asks
    does_not_show: str  # one sentence: what must not be concluded from it
    needs: tuple[str, ...] = ()  # keys of NEEDS
    fills: bool = False  # whether texts of different lengths may share a batch, with fillers

    def __post_init__(self) -> None:
        check_known("cost", [self.cost], COSTS)
        check_known("need of a trial", self.needs, NEEDS)

    @property
    def summary(self) -> str:
        """The first line of its docstring."""
        return (self.function.__doc__ or "").strip().splitlines()[0]

    @property
    def options(self) -> Mapping[str, Any]:
        """Its options with their defaults; the seed is one of them."""
        return options_of(self.function)

    @property
    def scope(self) -> Scope:
        """The scope that it uses if none is given."""
        found: Scope = signature(self.function).parameters["scope"].default
        return found

    def run(
        self, questions: Sequence[Question], scope: Scope | None = None, **options: Any
    ) -> TrialOutcome:
        """Run it on texts; an unknown option is an error that names those there are."""
        if not questions:
            raise UsageError(f"{self.name} needs at least one text, and there is none")
        checked = checked_options(self.name, self.function, options)
        return self.function(questions, self.scope if scope is None else scope, **checked)


TRIALS = Registry("trial", Trial, group="attlas.trials", package="attlas.trials")
trial = TRIALS.register


def seed_for(seed: int, text: int, name: str) -> int:
    """The seed for one text; it does not depend on the other texts."""
    mixed = np.random.SeedSequence([seed, text, crc32(name.encode())])
    return int(mixed.generate_state(1, np.uint64)[0] >> np.uint64(1))
