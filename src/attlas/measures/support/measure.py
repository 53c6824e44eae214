"""What a measure is, the explanation it judges, and the registry of all of them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attlas.data.example import Example
from attlas.models.subject import Subject
from attlas.registry import Registry
from attlas.removing.erasures import Outcomes, Ways
from attlas.results import Explanation
from attlas.shapes import TokenMarks, TokenVector

BETTER = ("higher", "lower")
KINDS = {
    "faithfulness": "does it say what the model does?",
    "robustness": "does it stay where nothing changed, and change where the model did?",
    "plausibility": "does it agree with people?",
}
NEEDS = {
    "removal": "the model's answers to the text without some of its tokens",
    "marks": "tokens that people marked, or that editors changed",
    "method": "the method, to compute the explanation again",
    "edits": "the text as editors changed it, to turn its label",
}
COSTS = {
    "cheap": "at most one pass of the model for each token, shared by all that ask for the same",
    "dear": "the method again, several times over",
}


@dataclass(frozen=True, eq=False)
class Case:
    """One explanation to be judged: the scores of the content tokens, and what is known of them.

    A higher score speaks more for the target, and signs count. All explanations of a text have one
    `seed`: it breaks ties and draws sets of tokens, and what is drawn twice is asked once.
    """

    scores: TokenVector
    seed: int
    marks: TokenMarks | None = None
    _known: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)

    def __len__(self) -> int:
        return len(self.scores)

    def order(self) -> NDArray[np.intp]:
        """The content tokens from the highest score down, ties in an order drawn by the seed."""
        return np.lexsort((_drawn(len(self), self.seed), -self.scores))

    def ways(self, choose: "Callable[[Case], Ways]") -> Ways:
        """The sets that a measure wants removed of this case, worked out once."""
        if choose not in self._known:
            self._known[choose] = choose(self)
        found: Ways = self._known[choose]
        return found


@lru_cache(maxsize=1024)
def _drawn(count: int, seed: int) -> NDArray[np.intp]:
    """The order that breaks ties: one for all explanations of a text."""
    drawn: NDArray[np.intp] = np.random.default_rng(seed).permutation(count)
    drawn.setflags(write=False)
    return drawn


@dataclass(frozen=True, eq=False)
class Occasion:
    """An explanation and how it came about, for measures that ask the model in their own way."""

    subject: Subject
    text: Any  # as it was given to be explained
    explanation: Explanation
    seed: int
    example: Example | None = None  # what is known of the text, where something is


NOTHING = Outcomes(log_probability=np.empty(0), chosen=np.empty(0, dtype=bool))
Value = Callable[[Case, Outcomes, Outcomes], float]
Curve = Callable[[Case, Outcomes, Outcomes], NDArray[np.float64]]


@dataclass(frozen=True)
class Measure:
    """A way to judge an explanation, and what the reader of its figure must know.

    The figure comes from one of two functions. `value` gets a case, what the model says of the
    whole text, and what it says without each of the sets in `ways`; a measure without `ways` asks
    the model nothing and may be handed NOTHING for both. `ask` gets the occasion: the measures
    that need the method or edits. Either gives NaN for a text on which nothing can be judged.
    """

    name: str
    better: str  # one of BETTER
    kind: str  # a key of KINDS
    needs: tuple[str, ...]  # keys of NEEDS
    by_rank: bool  # whether the order of the scores is all that counts
    reading: str  # one sentence: what the figure says
    paper: str
    cost: str = "cheap"  # a key of COSTS
    value: Value | None = None
    ways: Callable[[Case], Ways] | None = None
    curve: Curve | None = None  # the figure at each of `sizes`
    ask: Callable[[Occasion], float] | None = None

    def is_better(self, one: float, other: float) -> bool:
        """Whether the first of two figures is the better one."""
        return one > other if self.better == "higher" else one < other


MEASURES: Registry[Measure] = Registry("measure")


def measure(**record: Any) -> Callable[[Value], Value]:
    """Register the decorated function as the value of a measure under its own name."""

    def register(value: Value) -> Value:
        name = value.__name__
        MEASURES.add(name, Measure(name=name, value=value, **record))
        return value

    return register


def asking_measure(
    **record: Any,
) -> Callable[[Callable[[Occasion], float]], Callable[[Occasion], float]]:
    """Register the decorated function as a measure that asks the model in its own way."""

    def register(ask: Callable[[Occasion], float]) -> Callable[[Occasion], float]:
        name = ask.__name__
        MEASURES.add(name, Measure(name=name, ask=ask, **record))
        return ask

    return register
