"""The licence of a heat map: whether its largest scores are where the tokens matter on this text.

How much each token matters is found without a method, from random orders of removing all of them,
under two removals. The rules stand in `_word` and `_licence`.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np
from numpy.typing import NDArray
from scipy.special import stdtrit as student_quantile

from attlas.errors import AttlasError
from attlas.mathematics.token_effects import (
    MOST_EXACT,
    TokenEffects,
    capture,
    capture_p,
    random_orders,
    removed_sets,
    right_way,
    token_effects,
)
from attlas.models.asking.question import Question
from attlas.progress import Step, Watch
from attlas.removing.erasures import Erasures, Ways
from attlas.removing.removal import check_removal
from attlas.results.support.licence import (
    CANNOT,
    FLOOR,
    LEAST,
    LEVEL,
    LUCK,
    MAY,
    MAY_NOT,
    RELIABLE,
    SHORTEST,
    Licence,
    RemovalLicence,
    why,
)
from attlas.shapes import TokenMarks, TokenVector

TRIED = ("delete", "mask", "pad", "zero_embedding")  # the first two that a model allows
PAIRS = 8  # of random orders of removal
MOST_SIZES = 64  # sets tried of each order
PIECES = 16  # parts of a set that are tried to be left out at once
Found = tuple[TokenMarks | None, TokenMarks | None]


@dataclass(frozen=True, eq=False)
class HeatMap:
    """The scores of a text's content tokens; the text is one of those that are asked about."""

    text: int
    scores: TokenVector
    signed: bool
    seed: int  # draws the orders of removal


def text_key(text: Any) -> int:
    """A number made from a text; the same for all pictures."""
    known = text if isinstance(text, (str, tuple, list)) else type(text).__name__
    return crc32(repr(known).encode("utf-8", "surrogatepass"))


def text_seed(text: Any, seed: int = 0) -> int:
    """The seed of all that is drawn once for a text."""
    random = np.random.default_rng([seed, text_key(text), crc32(b"case")])
    return int(random.integers(2**32))


def two_removals(questions: Sequence[Question]) -> list[Erasures]:
    """The first two ways to remove tokens that these models allow, or fewer."""
    found: list[Erasures] = []
    for how in TRIED:
        if len(found) < 2 and _allows(questions, how):
            found.append(Erasures(questions, how))
    return found


def _allows(questions: Sequence[Question], how: str) -> bool:
    try:
        for question in questions:
            check_removal(question.subject, how)
    except AttlasError:
        return False
    return True


def licences(
    erasures: Sequence[Erasures],
    heat_maps: Sequence[HeatMap],
    *,
    pairs: int = PAIRS,
    watch: Watch = lambda step: None,
) -> list[Licence]:
    """The licence of each heat map, under each of these removals."""
    rows = []
    for number, removal in enumerate(erasures):
        watch(Step(f"licence: tokens removed by {removal.how}", number, len(erasures)))
        rows.append(_under(removal, heat_maps, pairs))
    return [
        _licence(heat_map, [under[number] for under in rows])
        for number, heat_map in enumerate(heat_maps)
    ]


def _under(erasures: Erasures, heat_maps: Sequence[HeatMap], pairs: int) -> list[RemovalLicence]:
    orders = [random_orders(len(each.scores), pairs, each.seed) for each in heat_maps]
    walks = [removed_sets(each) for each in orders]
    wanted: dict[int, Any] = {}
    for heat_map, sets in zip(heat_maps, walks, strict=True):
        wanted.setdefault(heat_map.text, []).append(sets)
    erasures.ask({text: np.concatenate(sets) for text, sets in wanted.items()})
    effects, searches = [], []
    for heat_map, own, sets in zip(heat_maps, orders, walks, strict=True):
        answers = erasures.of(heat_map.text, sets)
        found = token_effects(own, answers.probability, answers.distribution)
        effects.append(found)
        ranked = [found.importance, found.pull, np.abs(heat_map.scores), heat_map.scores]
        searches.append(SetSearch(heat_map.text, sets, ranked))
    smallest = find_smallest(erasures, searches)
    return [
        _row(erasures, heat_map, found, sets)
        for heat_map, found, sets in zip(heat_maps, effects, smallest, strict=True)
    ]


def _row(erasures: Erasures, heat_map: HeatMap, effects: TokenEffects, sets: Any) -> RemovalLicence:
    content, scores = erasures.content(heat_map.text), heat_map.scores
    caught, best = capture(scores, effects.importance), effects.best_capture
    share = min(caught / best, 1.0) if best > 0 else float("nan")
    p = capture_p(scores, effects.importance)
    enough, needed = (
        None if each is None else tuple(content[place] for place in np.flatnonzero(each))
        for each in sets
    )
    return RemovalLicence(
        removal=erasures.how,
        word=_word(effects, share, p),
        capture=caught,
        best=best,
        share=share,
        p=p,
        reliability=effects.reliability,
        right_way=right_way(scores, effects.pull, heat_map.signed),
        for_target=right_way(np.ones(len(scores)), effects.pull, signed=False),
        enough=enough,
        needed=needed,
    )


def _word(effects: TokenEffects, share: float, p: float) -> str:
    """What one removal says."""
    if effects.moves.shape[1] < SHORTEST or not _can_be_told(effects):
        return CANNOT
    if share < FLOOR or p > LUCK:
        return MAY_NOT
    return MAY if p <= LEVEL else CANNOT


def _can_be_told(effects: TokenEffects) -> bool:
    """Whether some tokens surely matter more than others, and which do is known."""
    return (
        effects.best_capture >= LEAST
        and effects.reliability >= RELIABLE
        and _surely_above_zero(effects.best_captures)
    )


def _surely_above_zero(values: TokenVector) -> bool:
    error = float(values.std(ddof=1)) / np.sqrt(len(values))
    return bool(values.mean() > student_quantile(len(values) - 1, 1 - LEVEL) * error)


def _licence(heat_map: HeatMap, rows: Sequence[RemovalLicence]) -> Licence:
    """The word that both removals give, if they give the same."""
    words = {row.word for row in rows}
    word = rows[0].word if len(words) == 1 and len(rows) > 1 else CANNOT
    count = len(heat_map.scores)
    exact = count <= MOST_EXACT
    return Licence(word, why(word, rows, count), tuple(rows), heat_map.signed, exact)


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
