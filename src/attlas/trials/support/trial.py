"""What a trial is: an experiment on the attention itself; and the registry of all of them."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from inspect import Parameter, signature
from typing import Any
from zlib import crc32

import numpy as np

from attlas.errors import UsageError
from attlas.methods.support.method import NEEDS as MODEL_NEEDS
from attlas.registry import Registry, check_known
from attlas.shapes import TextValues

COSTS = {
    "cheap": "some hundred changed attentions for each text, most of them in one pass",
    "expensive": "a search on each text, or training",
}
NEEDS = {
    **MODEL_NEEDS,
    "values": "the values that attention mixes, apart from its weights",
    "training data": "texts with labels to train on",
    "marks": "words that people marked",
    "conllu": "sentences with their syntax, in a CoNLL-U file",
}


@dataclass(frozen=True, eq=False)
class TrialOutcome:
    """What a trial found on some texts.

    Figures are by name, one for each text, not a number where nothing can be said of it. `ceilings`
    are the most that the figure of the same name could be, for all texts or for each. A plot is
    JSON: its `kind` (scatter, curve, bars, matrix, maps, table), `title`, `x_label`, `y_label`, the
    data, and `reading`, a sentence on how to read it.
    """

    figures: Mapping[str, TextValues]
    texts: tuple[int, ...]  # their numbers among the texts that were asked about
    sentence: str  # what was found, with the figures
    ceilings: Mapping[str, float | TextValues] = field(default_factory=dict)
    plots: tuple[Mapping[str, Any], ...] = ()
    notes: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)  # all else, as JSON

    def __post_init__(self) -> None:
        wrong = [name for name, values in self.figures.items() if len(values) != len(self.texts)]
        if wrong:
            raise UsageError(f"{wrong[0]!r} has not one figure for each of {len(self.texts)} texts")


@dataclass(frozen=True)
class Trial:
    """An experiment on the attention of a model, and what the reader of its figures must know."""

    name: str
    run: Callable[..., TrialOutcome]
    cost: str  # a key of COSTS
    paper: str
    reading: str  # one sentence: what it asks
    does_not_show: str  # one sentence: what must not be read into it
    needs: tuple[str, ...] = ()  # keys of NEEDS
    fills: bool = False  # whether texts of several lengths may share a batch, the shorter filled up

    def __post_init__(self) -> None:
        check_known("cost", [self.cost], COSTS)
        check_known("need of a trial", self.needs, NEEDS)

    @property
    def summary(self) -> str:
        """The first line of its description."""
        return (self.run.__doc__ or "").strip().splitlines()[0]

    @property
    def options(self) -> Mapping[str, Any]:
        """Its options with their defaults, the seed among them."""
        parameters = signature(self.run).parameters.values()
        return {p.name: p.default for p in parameters if p.kind is Parameter.KEYWORD_ONLY}


TRIALS = Registry("trial", Trial, group="attlas.trials", package="attlas.trials")
trial = TRIALS.register


def seed_for(seed: int, text: int, name: str) -> int:
    """The seed of what is drawn for one text: the same whatever other texts there are."""
    mixed = np.random.SeedSequence([seed, text, crc32(name.encode())])
    return int(mixed.generate_state(1, np.uint64)[0] >> np.uint64(1))
