"""Ceilings: the best order of a text's tokens there is, as far as a beam search finds it."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from attlas.errors import UnknownNameError, UsageError
from attlas.quantities.erasure import Erasures
from attlas.shapes import Ways, WayScores

AIMS = ("comprehensiveness", "sufficiency")
WIDTH = 2
Sizes = Callable[[int], Sequence[int]]  # for a text of so many tokens: how many come first, rising


@dataclass(frozen=True, eq=False)
class Best:
    """An order of the content tokens of a text, the first ones first, and its figure."""

    order: NDArray[np.intp]
    value: float  # the mean over the sizes of how far the probability falls; NaN without sizes


def best_orders(
    erasures: Erasures, texts: Sequence[int], aim: str, sizes: Sizes, width: int = WIDTH
) -> dict[int, Best]:
    """The order of each text whose first tokens, in sets of these sizes, do best in the mean.

    The aim is `comprehensiveness`: without them the probability falls as far as can be; or
    `sufficiency`: with them alone it falls as little as can be. The search goes from one size to
    the next with the `width` best sets so far, and once more with the best alone, so that it is
    never worse than greedy. Where sizes lie apart, the tokens between come as a block: those that
    do most by themselves.
    """
    if aim not in AIMS:
        raise UnknownNameError("aim", aim, AIMS)
    if width < 1:
        raise UsageError(f"a width is at least 1, not {width}")
    game = _Game(erasures, aim)
    beams = [game.search(texts, sizes, each) for each in sorted({1, width})]
    best = {text: max((each[text] for each in beams), key=_total) for text in texts}
    return {text: game.best(text, beam, sizes) for text, beam in best.items()}


@dataclass(frozen=True, eq=False)
class _Beam:
    """The best sets of one size and the orders they come from, the best first."""

    chosen: Ways
    totals: WayScores  # what the sets on the way were worth together
    orders: NDArray[np.intp]  # `[way, size]`

    @classmethod
    def start(cls, count: int) -> "_Beam":
        return cls(np.zeros((1, count), dtype=bool), np.zeros(1), np.zeros((1, 0), dtype=np.intp))

    def singles(self) -> tuple[NDArray[np.intp], NDArray[np.intp], Ways]:
        """Each set with each token that it lacks: which set, which token, and both together."""
        states, tokens = (~self.chosen).nonzero()
        sets = self.chosen[states]
        sets[np.arange(len(sets)), tokens] = True
        return states, tokens, sets

    def blocks(self, worth: WayScores, size: int, width: int) -> tuple[NDArray[np.intp], Ways]:
        """Orders up to a size, `width` for each set, by what its tokens are worth by themselves.

        They share all tokens but the last. Of one set, the orders stand together.
        """
        states, tokens, _ = self.singles()
        rank = np.lexsort((-worth, states)).reshape(len(self.chosen), -1)
        ranked = tokens[rank]  # `[way, rank]`
        step = size - self.orders.shape[1]
        last = ranked[:, step - 1 : step - 1 + width]
        shared = np.concatenate([self.orders, ranked[:, : step - 1]], axis=1)
        orders = np.concatenate(
            [np.repeat(shared, last.shape[1], axis=0), last.reshape(-1, 1)], axis=1
        )
        sets = np.zeros((len(orders), self.chosen.shape[1]), dtype=bool)
        np.put_along_axis(sets, orders, True, axis=1)
        return orders, sets

    def advance(
        self, orders: NDArray[np.intp], sets: Ways, worth: WayScores, width: int
    ) -> "_Beam":
        """The best of these sets, each once."""
        totals = np.repeat(self.totals, len(sets) // len(self.totals)) + worth
        best = np.argsort(-totals, kind="stable")
        _, first = np.unique(np.packbits(sets[best], axis=1), axis=0, return_index=True)
        kept = best[np.sort(first)[:width]]
        return _Beam(sets[kept], totals[kept], orders[kept])


def _total(beam: _Beam) -> float:
    return float(beam.totals[0])


class _Game:
    """What sets of tokens are worth to an aim."""

    def __init__(self, erasures: Erasures, aim: str) -> None:
        self._erasures = erasures
        self._keeps = aim == "sufficiency"

    def worth(self, sets: Mapping[int, Ways]) -> dict[int, WayScores]:
        """Of sets of each text: the more, the better they serve the aim; all asked together."""
        ways = {text: ~each if self._keeps else each for text, each in sets.items()}
        self._erasures.ask(ways)
        found = {text: self._erasures.of(text, each).probability for text, each in ways.items()}
        return found if self._keeps else {text: -each for text, each in found.items()}

    def search(self, texts: Sequence[int], sizes: Sizes, width: int) -> dict[int, _Beam]:
        """The best sets of the last size of each text."""
        counts = {text: len(self._erasures.content(text)) for text in texts}
        beams = {text: _Beam.start(count) for text, count in counts.items()}
        steps = {text: list(sizes(count)) for text, count in counts.items()}
        for number in range(max(map(len, steps.values()), default=0)):
            here = {text: step[number] for text, step in steps.items() if number < len(step)}
            alone = self.worth({text: beams[text].singles()[2] for text in here})
            grown = {text: beams[text].blocks(alone[text], here[text], width) for text in here}
            worth = self.worth({text: sets for text, (_, sets) in grown.items()})
            for text, (orders, sets) in grown.items():
                beams[text] = beams[text].advance(orders, sets, worth[text], width)
        return beams

    def best(self, text: int, beam: _Beam, sizes: Sizes) -> Best:
        """The best order of a beam with the tokens behind it, and its figure."""
        rest = (~beam.chosen[0]).nonzero()[0]
        steps = len(sizes(beam.chosen.shape[1]))
        if not steps:
            return Best(rest, float("nan"))
        worth = _total(beam) / steps
        whole = float(self._erasures.whole(text).probability[0])
        value = whole - worth if self._keeps else whole + worth
        return Best(np.concatenate([beam.orders[0], rest]), value)
