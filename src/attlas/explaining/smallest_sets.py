"""The smallest sets of tokens that keep the model's answer by themselves, or that it needs."""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attlas.removing.erasures import Erasures, Ways
from attlas.shapes import TokenMarks, TokenVector

MOST_SIZES = 64  # sets tried of each order
PIECES = 16  # parts of a set that are tried to be left out at once
Found = tuple[TokenMarks | None, TokenMarks | None]


@dataclass(frozen=True, eq=False)
class SetSearch:
    """Where to look: sets of a text that were removed already, and orders by some scores."""

    text: int
    removed: Ways
    scores: Sequence[TokenVector]

    def candidates(self) -> Ways:
        """The sets to start from: the highest of each order, then what was removed and kept."""
        count = self.removed.shape[1]
        sizes = np.arange(1, count, max(1, -(-count // MOST_SIZES)))
        tops = [_ranks(each)[None] < sizes[:, None] for each in self.scores]
        return np.concatenate([*tops, self.removed, ~self.removed])


@dataclass(eq=False)
class _Shrinking:
    """A set that has a property, and which of its parts are tried to be left out next."""

    search: SetSearch
    keeps: bool  # whether the set is kept alone, or removed
    chosen: TokenMarks
    pieces: int = PIECES

    def smaller(self) -> Ways:
        """The set without each of its parts, the least important first."""
        importance = np.nan_to_num(self.search.scores[0])
        tokens = np.flatnonzero(self.chosen)
        tokens = tokens[np.argsort(importance[tokens], kind="stable")]
        parts = np.array_split(tokens, min(self.pieces, len(tokens)))
        sets = np.repeat(self.chosen[None], len(parts), axis=0)
        for row, part in zip(sets, parts, strict=True):
            row[part] = False
        return sets

    def shrink(self, sets: Ways, fits: NDArray[np.bool_]) -> bool:
        """Take a smaller set that fits, or try smaller parts; whether there is more to try."""
        if fits.any():
            self.chosen = sets[int(fits.argmax())]
            return bool(self.chosen.any())
        if self.pieces >= int(self.chosen.sum()):
            return False
        self.pieces *= 2
        return True


def find_smallest(erasures: Erasures, searches: Sequence[SetSearch]) -> list[Found]:
    """For each search, the smallest set found that is enough, and the smallest that is needed.

    Kept alone, a set that is enough keeps the model's first choice; without a set that is needed,
    it changes. No token of either can be left out. None if there is no such set, or the target is
    not the model's choice.
    """
    starts = [each.candidates() for each in searches]
    _ask(erasures, [(each.text, sets) for each, sets in zip(searches, starts, strict=True)])
    found: dict[tuple[int, bool], _Shrinking] = {}
    for number, (search, sets) in enumerate(zip(searches, starts, strict=True)):
        if not erasures.whole(search.text).chosen[0]:
            continue
        for keeps in (True, False):
            fits = _fits(erasures, search.text, sets, keeps)
            if fits.any():
                sizes = np.where(fits, sets.sum(axis=1), sets.shape[1] + 1)
                found[number, keeps] = _Shrinking(search, keeps, sets[int(sizes.argmin())])
    _shrink_all(erasures, list(found.values()))
    return [
        (_chosen(found.get((number, True))), _chosen(found.get((number, False))))
        for number in range(len(searches))
    ]


def _shrink_all(erasures: Erasures, running: list[_Shrinking]) -> None:
    running = [each for each in running if each.chosen.any()]
    while running:
        tried = [each.smaller() for each in running]
        asked = [(each.search.text, sets) for each, sets in zip(running, tried, strict=True)]
        _ask(erasures, asked, [each.keeps for each in running])
        running = [
            each
            for each, sets in zip(running, tried, strict=True)
            if each.shrink(sets, _fits(erasures, each.search.text, sets, each.keeps))
        ]


def _chosen(found: _Shrinking | None) -> TokenMarks | None:
    return None if found is None else found.chosen


def _ask(
    erasures: Erasures, sets: Sequence[tuple[int, Any]], keeps: Sequence[bool] | None = None
) -> None:
    """Ask about all of these sets at once: removed, kept alone, or both."""
    wanted: dict[int, list[Ways]] = {}
    for number, (text, ways) in enumerate(sets):
        both = [ways, ~ways] if keeps is None else [~ways if keeps[number] else ways]
        wanted.setdefault(text, []).extend(both)
    erasures.ask({text: np.concatenate(ways) for text, ways in wanted.items()})


def _fits(erasures: Erasures, text: int, sets: Ways, keeps: bool) -> NDArray[np.bool_]:
    """Whether each set is enough, or needed; never where nothing is left to ask about."""
    outcomes = erasures.of(text, ~sets if keeps else sets)
    known = ~np.isnan(outcomes.log_probability)
    fits: NDArray[np.bool_] = known & (outcomes.chosen if keeps else ~outcomes.chosen)
    return fits


def _ranks(scores: TokenVector) -> NDArray[np.intp]:
    ranks = np.empty(len(scores), dtype=np.intp)
    ranks[np.argsort(-np.nan_to_num(scores), kind="stable")] = np.arange(len(scores))
    return ranks
