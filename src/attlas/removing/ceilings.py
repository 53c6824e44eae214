"""Ceilings: the best order of a text's tokens that a beam search finds."""

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
CANDIDATES = 6  # tokens to try next: those that gained most when they were last tried
Sizes = Callable[[int], Sequence[int]]  # for a text of n tokens, the sizes to judge, rising


@dataclass(frozen=True, eq=False)
class Best:
    """An order of the content tokens of a text, and the value it reaches."""

    order: NDArray[np.intp]
    value: float  # the mean fall of the probability over the sizes; NaN without sizes


def best_orders(
    erasures: Erasures,
    texts: Sequence[int],
    aims: Sequence[str],
    sizes: Sizes,
    width: int = WIDTH,
) -> dict[str, dict[int, Best]]:
    """For each aim, the best order of each text, judged by sets of its first tokens.

    The aim `comprehensiveness` wants the probability to fall as far as possible without them, and
    `sufficiency` as little as possible with them alone, averaged over these sizes. The search goes
    from one size to the next with the `width` best sets so far. It runs once more with width 1, so
    that it is never worse than that. It tries the next tokens that gained most when last tried. If
    two sizes are further than one apart, the tokens that do most by themselves are added as a
    block. All searches run together and share their questions to the model.
    """
    for aim in aims:
        if aim not in AIMS:
            raise UnknownNameError("aim", aim, AIMS)
    if width < 1:
        raise UsageError(f"width must be at least 1, not {width}")
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
    """Run all searches; the model is asked for what they need in one go."""
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
    """The best sets of one size and the orders they come from, best first."""

    chosen: Ways
    totals: WayScores  # the sum of the values of all sets on the way
    orders: NDArray[np.intp]  # `[way, size]`
    worth: NDArray[np.float64]  # the value of each set by itself

    @classmethod
    def start(cls, count: int) -> "_Beam":
        nothing = np.zeros((1, count), dtype=bool)
        return cls(nothing, np.zeros(1), np.zeros((1, 0), dtype=np.intp), np.zeros(1))

    def singles(
        self, hope: NDArray[np.float64], most: int
    ) -> tuple[NDArray[np.intp], NDArray[np.intp], NDArray[np.bool_]]:
        """Each set with one more token: the number of the set, the token, and the new set.

        Each set is tried with the `most` tokens that promise most.
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
        """Orders up to a size, `width` for each set, by the values of its tokens by themselves.

        The orders of one set stand together and share all tokens but the last. Returned are the
        orders, their sets, and the values of the sets, which are known if they grew by one token.
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
        """The best of these sets, without repeats."""
        totals = np.repeat(self.totals, len(sets) // len(self.totals)) + worth
        best = np.argsort(-totals, kind="stable")
        _, first = np.unique(np.packbits(sets[best], axis=1), axis=0, return_index=True)
        kept = best[np.sort(first)[:width]]
        return _Beam(sets[kept], totals[kept], orders[kept], worth[kept])


Beams = dict[int, _Beam]  # of each text
Search = Generator[Mapping[int, Ways], None, Beams]  # yields what must be asked, and returns beams


def _learned(
    hope: NDArray[np.float64],
    tokens: NDArray[np.intp],
    worth: NDArray[np.float64],
    beam: _Beam,
    states: NDArray[np.intp],
) -> NDArray[np.float64]:
    """What each token promises: the most it gained when it was last tried."""
    before = beam.worth[states]
    found = np.full(len(hope), -np.inf)
    np.maximum.at(found, tokens, worth - before)
    return np.where(np.isfinite(found), found, hope)


def _total(beam: _Beam) -> float:
    return float(beam.totals[0])


class _Game:
    """The values of sets of tokens for one aim."""

    def __init__(self, erasures: Erasures, aim: str) -> None:
        self._erasures = erasures
        self._keeps = aim == "sufficiency"

    def worth(
        self, sets: Mapping[int, Ways]
    ) -> Generator[Mapping[int, Ways], None, dict[int, WayScores]]:
        """The values of sets of each text; higher serves the aim better."""
        ways = {text: ~each if self._keeps else each for text, each in sets.items()}
        yield ways
        found = {text: self._erasures.of(text, each).probability for text, each in ways.items()}
        return found if self._keeps else {text: -each for text, each in found.items()}

    def search(self, texts: Sequence[int], sizes: Sizes, width: int) -> Search:
        """Yield what must be asked, and return the best sets of the last size of each text."""
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
        """What to try next: first all tokens, then those that promise most."""
        step = size - beam.orders.shape[1]
        first = beam.orders.shape[1] == 0
        most = len(hope) if first else max(CANDIDATES, step + width - 1)
        return beam.singles(hope, most)

    def best(self, text: int, beam: _Beam, sizes: Sizes) -> Best:
        """The best order of a beam, followed by all other tokens, and its value."""
        rest = (~beam.chosen[0]).nonzero()[0]
        steps = len(sizes(beam.chosen.shape[1]))
        if not steps:
            return Best(rest, float("nan"))
        worth = _total(beam) / steps
        whole = float(self._erasures.whole(text).probability[0])
        value = whole - worth if self._keeps else whole + worth
        return Best(np.concatenate([beam.orders[0], rest]), value)
