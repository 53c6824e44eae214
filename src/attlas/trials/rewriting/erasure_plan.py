"""Which weights of one text are erased, in which order, and what the outcomes come to."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from math import ceil

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from attlas.shapes import TokenMarks, TokenVector, WayMarks, Ways, WayScores

ORDERS = ("attention", "gradient", "gradient × attention", "random order")
REMOVED = {order: f"removed by {order}" for order in ORDERS}
WEIGHT_REMOVED = {order: f"weight removed by {order}" for order in ORDERS}
LARGEST_DIVERGENCE, RANDOM_DIVERGENCE = "JSD of the largest", "JSD of a random one"
ALL_DIVERGENCE, DIVERGENCE_GAP, WEIGHT_GAP = (
    "JSD of all",
    "difference of JSD",
    "difference of weight",
)
LARGEST_TURNS, RANDOM_TURNS, ALL_TURN = "largest turns it", "random one turns it", "all turn it"
TURNABLE = "some set turns it"
NAMES = (
    *(LARGEST_DIVERGENCE, RANDOM_DIVERGENCE, ALL_DIVERGENCE, DIVERGENCE_GAP, WEIGHT_GAP),
    *(LARGEST_TURNS, RANDOM_TURNS, ALL_TURN, TURNABLE),
    *REMOVED.values(),
    *WEIGHT_REMOVED.values(),
)
NONE, LARGEST, OTHER, ALL, GROWING = range(5)  # where each set stands among those of a text


@dataclass(frozen=True, eq=False)
class ErasurePlan:
    """The sets of weights of one text that are erased."""

    weight: TokenVector
    orders: Sequence[NDArray[np.intp]]  # tokens that may be erased: by three scores, then as drawn
    other: int | None  # the token that the largest is held against, where there is another

    @classmethod
    def of(
        cls, erasable: TokenMarks, scores: Sequence[TokenVector], random: Generator, draws: int
    ) -> "ErasurePlan":
        """From the scores of attention, gradient and gradient × attention, highest first.

        What is tied, and the other token, are drawn.
        """
        tokens = np.flatnonzero(erasable)
        ordered = [
            tokens[np.lexsort((random.permutation(len(tokens)), -each[tokens]))] for each in scores
        ]
        other = int(random.choice(ordered[0][1:])) if len(tokens) > 1 else None
        drawn = [random.permutation(tokens) for _ in range(draws)]
        return cls(scores[0], [*ordered, *drawn], other)

    def __len__(self) -> int:
        return len(self.orders[0])

    def sizes(self, steps: int) -> list[int]:
        """How many are erased at each step: the last time, all."""
        return [ceil(step * len(self) / steps) for step in range(1, steps + 1)]

    def sets(self, steps: int) -> Ways:
        """None, the largest, the other, all; then, step by step, the first of each order."""
        tokens = len(self.weight)
        few: list[Sequence[int] | NDArray[np.intp]] = [
            [],
            self.orders[0][:1],
            [] if self.other is None else [self.other],
            self.orders[0],
        ]
        growing = [order[:size] for size in self.sizes(steps) for order in self.orders]
        gone = np.zeros((GROWING + len(growing), tokens), dtype=bool)
        for row, chosen in enumerate([*few, *growing]):
            gone[row, chosen] = True
        return gone

    def figures(self, divergence: WayScores, turned: WayMarks, steps: int) -> Mapping[str, float]:
        """What came of the sets: of two single weights, of all, and of those that grew."""
        found = dict.fromkeys(NAMES, np.nan)
        if len(self):
            found |= {ALL_DIVERGENCE: divergence[ALL], ALL_TURN: turned[ALL]}
            found |= self._removed(turned[GROWING:].reshape(steps, len(self.orders)), steps)
        if self.other is not None:
            largest = self.weight[self.orders[0][0]]
            found |= {
                LARGEST_DIVERGENCE: divergence[LARGEST],
                RANDOM_DIVERGENCE: divergence[OTHER],
                DIVERGENCE_GAP: divergence[LARGEST] - divergence[OTHER],
                WEIGHT_GAP: largest - self.weight[self.other],
                LARGEST_TURNS: turned[LARGEST],
                RANDOM_TURNS: turned[OTHER],
            }
        return {name: float(value) for name, value in found.items()}

    def _removed(self, turned: NDArray[np.bool_], steps: int) -> Mapping[str, float]:
        """Of each order, the share of the weights that went, and of what they weigh.

        One, and all, where no set turned the decision. `turned` is `[step, order]`.
        """
        sizes, total = self.sizes(steps), self.weight[self.orders[0]].sum()
        gone = [sizes[each.argmax()] if each.any() else len(self) for each in turned.T]
        pairs = zip(self.orders, gone, strict=True)
        weighs = [self.weight[order[:count]].sum() / (total or np.nan) for order, count in pairs]
        found = {TURNABLE: float(turned.any())}
        for names, values in ((REMOVED, np.array(gone) / len(self)), (WEIGHT_REMOVED, weighs)):
            last = len(ORDERS) - 1
            each = [*values[:last], np.mean(values[last:])]
            found |= dict(zip(names.values(), each, strict=True))
        return found
