"""What a measure is, the explanation it judges, and the registry of all of them."""

from collections.abc import Callable
from dataclasses import dataclass, field
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attlas.data.example import Example
from attlas.errors import UsageError
from attlas.models.asking.open_model import OpenModel
from attlas.registry import Registry, check_known
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
_OF_A_CASE = {"removal", "marks"}
COSTS = {
    "cheap": "at most one pass of the model for each token, shared by all measures that need it",
    "expensive": "runs the method several times more",
}

PAIRS = 8  # a random order and its reverse are a pair
# Pairs of a measure and a method that compute the same, and the removal that methods compute by.
SAME = {("tau_leave_one_out", "leave_one_out")}
REMOVES_BY = {"kernel_shap": "mask", "leave_one_out": "delete", "lime": "mask"}
STARTS_FROM = {"integrated_gradients": "mask"}  # the token that its baseline is made of


@dataclass(frozen=True, eq=False)
class Case:
    """One explanation to be judged: the scores of the content tokens, and which people marked.

    A higher score speaks more for the target, and signs count. All explanations of a text share
    one `seed`, which breaks ties and draws sets of tokens: so the model is asked once for each set.
    Scores that are not `signed` say nothing of which way a token pulls, as weights do not.
    """

    scores: TokenVector
    seed: int
    marks: TokenMarks | None = None
    signed: bool = True
    pairs: int = PAIRS  # of random orders in which all tokens are removed
    _known: dict[Any, Any] = field(default_factory=dict, init=False, repr=False)

    def __len__(self) -> int:
        return len(self.scores)

    def order(self) -> NDArray[np.intp]:
        """The content tokens from the highest score down, ties in an order drawn by the seed."""
        return np.lexsort((_drawn(len(self), self.seed), -self.scores))

    def ways(self, choose: "Callable[[Case], Ways]") -> Ways:
        """The sets of tokens that a measure removes from this case, computed once."""
        if choose not in self._known:
            self._known[choose] = choose(self)
        found: Ways = self._known[choose]
        return found


@lru_cache(maxsize=1024)
def _drawn(count: int, seed: int) -> NDArray[np.intp]:
    """The order that breaks ties, the same for all explanations of a text."""
    drawn: NDArray[np.intp] = np.random.default_rng(seed).permutation(count)
    drawn.setflags(write=False)
    return drawn


@dataclass(frozen=True, eq=False)
class Occasion:
    """An explanation and how it was made, for measures that ask the model themselves."""

    subject: OpenModel
    text: Any  # as the user gave it
    explanation: Explanation
    seed: int
    example: Example | None = None  # what is known of the text


NOTHING = Outcomes(np.empty(0), np.empty(0, dtype=bool), np.empty((0, 2)))
Value = Callable[[Case, Outcomes, Outcomes], float]
Curve = Callable[[Case, Outcomes, Outcomes], NDArray[np.float64]]


@dataclass(frozen=True)
class Measure:
    """A way to judge an explanation, and what the reader of its figure must know.

    A measure that needs removal or marks is a function of a Case, of what the model says of the
    whole text, and of what it says without each of the sets that `ways` chooses; without `ways`
    it asks the model nothing and may be handed NOTHING for both. Any other measure is a function of
    an Occasion and asks the model itself. Both return NaN for a text that they cannot judge.
    """

    name: str
    function: Callable[..., float]
    better: str  # one of BETTER
    kind: str  # a key of KINDS
    needs: tuple[str, ...]  # keys of NEEDS
    by_rank: bool  # whether the order of the scores is all that counts
    reading: str  # one sentence: what the figure says
    paper: str
    cost: str = "cheap"  # a key of COSTS
    ways: Callable[[Case], Ways] | None = None
    curve: Curve | None = None  # the figure at each of `sizes`
    shares_ways: bool = False  # whether `ways` is the same for all explanations of a text
    chance: Value | None = None  # the figure of shuffled scores on average, if no draw is needed
    ceiling: Value | None = None  # the best figure there is, if no search is needed

    def __post_init__(self) -> None:
        check_known("direction", [self.better], BETTER)
        check_known("kind of measure", [self.kind], KINDS)
        check_known("need of a measure", self.needs, NEEDS)
        check_known("cost", [self.cost], COSTS)
        if (self.ways is not None) != ("removal" in self.needs):
            raise UsageError(f"{self.name} needs removal if it has `ways`, and only then")

    @property
    def value(self) -> Value | None:
        """The function, if it judges a case."""
        return self.function if _OF_A_CASE & set(self.needs) else None

    @property
    def ask(self) -> Callable[[Occasion], float] | None:
        """The function, if it asks the model itself."""
        return None if _OF_A_CASE & set(self.needs) else self.function

    def is_better(self, one: float, other: float) -> bool:
        """Whether the first of two figures is the better one."""
        return one > other if self.better == "higher" else one < other


MEASURES = Registry("measure", Measure, group="attlas.measures", package="attlas.measures")
measure = MEASURES.register


def is_circular(
    measure: str, method: str, removal: str, *, computed_with: str | None = None
) -> bool:
    """Whether a method would be judged by what it was computed from.

    `computed_with` is the removal that the method was asked to use, if it was asked for one.
    """
    if (measure, method) in SAME:
        return True
    if measure == "location" and removal == STARTS_FROM.get(method):
        return True
    if "removal" not in MEASURES[measure].needs or method not in REMOVES_BY:
        return False
    return removal == (computed_with or REMOVES_BY[method])
