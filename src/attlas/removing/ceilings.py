"""Ceilings: the best order of a text's tokens there is, as far as a beam search finds it."""

from collections.abc import Callable, Generator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attlas.errors import UnknownNameError, UsageError
from attlas.removing.erasures import Erasures
from attlas.shapes import Ways, WayScores

AIMS = ("comprehensiveness", "sufficiency")
WIDTH = 2
CANDIDATES = 6  # tokens that are tried next: those that promised most when they were tried last
Sizes = Callable[[int], Sequence[int]]  # for a text of so many tokens: how many come first, rising


@dataclass(frozen=True, eq=False)
class Best:
    """An order of the content tokens of a text, the first ones first, and its figure."""

    order: NDArray[np.intp]
    value: float  # the mean over the sizes of how far the probability falls; NaN without sizes


def best_orders(
    erasures: Erasures,
    texts: Sequence[int],
    aims: Sequence[str],
    sizes: Sizes,
    width: int = WIDTH,
) -> dict[str, dict[int, Best]]:
    """For each aim, the order of each text whose first tokens, in sets of these sizes, do best.

    The aim is `comprehensiveness`: without them the probability falls as far as can be; or
    `sufficiency`: with them alone it falls as little as can be; in the mean over sizes. The search
    goes from one size to the next with the `width` best sets so far, and once more with the best
    alone, so that it is never worse than that. Of the tokens that could come next, those are tried
    that brought most when they were tried last. Where sizes lie apart, the tokens between come as a
    block: those that do most by themselves. All searches go on together, and ask together.
    """
    for aim in aims:
        if aim not in AIMS:
            raise UnknownNameError("aim", aim, AIMS)
    if width < 1:
        raise UsageError(f"a width is at least 1, not {width}")
    games = {aim: _Game(erasures, aim) for aim in aims}
    widths = sorted({1, width})
    searches = {
        (aim, each): games[aim].search(texts, sizes, each) for aim in aims for each in widths
    }
    beams = _together(erasures, searches)
    return {
        aim: {
            text: game.best(
                text, max((beams[aim, each][text] for each in widths), key=_total), sizes
            )
            for text in texts
        }
        for aim, game in games.items()
    }


def _together(erasures: Erasures, searches: "Mapping[Any, Search]") -> dict[Any, "Beams"]:
    """What each search comes to; what they want to know is asked of the model at once."""
    found: dict[Any, Beams] = {}
    running = dict(searches)
    while running:
        wanted: dict[int, list[Ways]] = {}
        for key, search in list(running.items()):
            try:
                asked = next(search)
            except StopIteration as ended:
                found[key] = ended.value
                del running[key]
            else:
                for text, ways in asked.items():
                    wanted.setdefault(text, []).append(ways)
        if wanted:
            erasures.ask({text: np.concatenate(ways) for text, ways in wanted.items()})
    return found


@dataclass(frozen=True, eq=False)
class _Beam:
    """The best sets of one size and the orders they come from, the best first."""

    chosen: Ways
    totals: WayScores  # what the sets on the way were worth together
    orders: NDArray[np.intp]  # `[way, size]`
    worth: NDArray[np.float64]  # of each set by itself; of no token, whatever all are compared with

    @classmethod
    def start(cls, count: int) -> "_Beam":
        nothing = np.zeros((1, count), dtype=bool)
        return cls(nothing, np.zeros(1), np.zeros((1, 0), dtype=np.intp), np.zeros(1))

    def singles(
        self, hope: NDArray[np.float64], most: int
    ) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.bool_]]:
        """Each set with tokens that it lacks: which set, which token, and both together.

        Of each set those `most` tokens that there is most hope for.
        """
        ranked = np.argsort(np.where(self.chosen, np.inf, -hope), axis=1, kind="stable")
        left = self.chosen.shape[1] - int(self.chosen[0].sum())
        tokens = ranked[:, : min(most, left)]
        states = np.repeat(np.arange(len(tokens)), tokens.shape[1])
        sets = self.chosen[states]
        sets[np.arange(len(sets)), tokens.ravel()] = True
        return states, tokens.ravel(), sets

    def blocks(
        self,
        states: NDArray[np.intp],
        tokens: NDArray[np.intp],
        worth: NDArray[np.float64],
        size: int,
        width: int,
    ) -> tuple[NDArray[np.intp], NDArray[np.bool_], WayScores]:
        """Orders up to a size, `width` for each set, by what its tokens are worth by themselves.

        They share all tokens but the last. Of one set, the orders stand together. With the orders
        come their sets, and what those are worth, which is known where they grew by one token.
        """
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
        known = worth[rank[:, step - 1 : step - 1 + width]].ravel()
        return orders, sets, known if step == 1 else np.full(len(sets), np.nan)

    def advance(
        self, orders: NDArray[np.intp], sets: Ways, worth: WayScores, width: int
    ) -> "_Beam":
        """The best of these sets, each once."""
        totals = np.repeat(self.totals, len(sets) // len(self.totals)) + worth
        best = np.argsort(-totals, kind="stable")
        _, first = np.unique(np.packbits(sets[best], axis=1), axis=0, return_index=True)
        kept = best[np.sort(first)[:width]]
        return _Beam(sets[kept], totals[kept], orders[kept], worth[kept])


Beams = dict[int, _Beam]  # of each text
Search = Generator[Mapping[int, Ways], None, Beams]  # gives what must be asked, and ends with these


def _learned(
    hope: NDArray[np.float64],
    tokens: NDArray[np.intp],
    worth: NDArray[np.float64],
    beam: _Beam,
    states: NDArray[np.intp],
) -> NDArray[np.float64]:
    """What each token promises: what it brought, at best, when it was tried last."""
    before = beam.worth[states]
    found = np.full(len(hope), -np.inf)
    np.maximum.at(found, tokens, worth - before)
    return np.where(np.isfinite(found), found, hope)


def _total(beam: _Beam) -> float:
    return float(beam.totals[0])


class _Game:
    """What sets of tokens are worth to an aim."""

    def __init__(self, erasures: Erasures, aim: str) -> None:
        self._erasures = erasures
        self._keeps = aim == "sufficiency"

    def worth(
        self, sets: Mapping[int, Ways]
    ) -> Generator[Mapping[int, Ways], None, dict[int, WayScores]]:
        """Of sets of each text: the more, the better they serve the aim."""
        ways = {text: ~each if self._keeps else each for text, each in sets.items()}
        yield ways
        found = {text: self._erasures.of(text, each).probability for text, each in ways.items()}
        return found if self._keeps else {text: -each for text, each in found.items()}

    def search(self, texts: Sequence[int], sizes: Sizes, width: int) -> Search:
        """The best sets of the last size of each text; on the way, what must be asked."""
        counts = {text: len(self._erasures.content(text)) for text in texts}
        beams = {text: _Beam.start(count) for text, count in counts.items()}
        steps = {text: list(sizes(count)) for text, count in counts.items()}
        hopes = {text: np.full(count, np.inf) for text, count in counts.items()}
        for number in range(max(map(len, steps.values()), default=0)):
            here = {text: step[number] for text, step in steps.items() if number < len(step)}
            tried = {
                text: self._tried(beams[text], hopes[text], here[text], width) for text in here
            }
            alone = yield from self.worth({text: sets for text, (_, _, sets) in tried.items()})
            grown = {}
            for text, (states, tokens, _) in tried.items():
                hopes[text] = _learned(hopes[text], tokens, alone[text], beams[text], states)
                grown[text] = beams[text].blocks(states, tokens, alone[text], here[text], width)
            asked = {text: sets for text, (_, sets, worth) in grown.items() if np.isnan(worth[0])}
            found = yield from self.worth(asked)
            for text, (orders, sets, worth) in grown.items():
                beams[text] = beams[text].advance(orders, sets, found.get(text, worth), width)
        return beams

    @staticmethod
    def _tried(
        beam: _Beam, hope: NDArray[np.float64], size: int, width: int
    ) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.bool_]]:
        """What is tried next: all tokens at first, then those there is most hope for."""
        step = size - beam.orders.shape[1]
        first = beam.orders.shape[1] == 0
        most = len(hope) if first else max(CANDIDATES, step + width - 1)
        return beam.singles(hope, most)

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
