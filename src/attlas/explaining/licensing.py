"""The licence of a heat map: whether its largest scores are where the tokens matter on this text.

How much each token matters is found without a method, from random orders of removing all of them,
under two removals. The rules stand in `_word` and `_licence`.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from zlib import crc32

import numpy as np
from scipy.stats import t as student

from attlas.errors import AttlasError
from attlas.explaining.smallest_sets import SetSearch, find_smallest
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
from attlas.removing.erasures import Erasures
from attlas.removing.removal import check_removal
from attlas.results.support.licence import CANNOT, MAY, MAY_NOT, Licence, RemovalLicence
from attlas.shapes import TokenVector

TRIED = ("delete", "mask", "pad", "zero_embedding")  # the first two that a model allows
FLOOR = 0.3  # of the best: scores that reach less are not where it matters
LEVEL = 0.05
LEAST = 0.02  # a best capture below this means that no token matters more than another
RELIABLE = 0.5
SHORTEST = 4  # content tokens: of three, every sixth order is the right one
PAIRS = 8  # of random orders of removal


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
    share = caught / best if best > 0 else float("nan")
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
    if share < FLOOR:
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
    return bool(values.mean() > student.ppf(1 - LEVEL, len(values) - 1) * error)


def _licence(heat_map: HeatMap, rows: Sequence[RemovalLicence]) -> Licence:
    """The word that both removals give, if they give the same."""
    words = {row.word for row in rows}
    word = rows[0].word if len(words) == 1 and len(rows) > 1 else CANNOT
    count = len(heat_map.scores)
    why = WHY[word](rows) if word != CANNOT else _why_it_cannot(rows, count)
    return Licence(word, why, tuple(rows), heat_map.signed, count <= MOST_EXACT)


def _reached(rows: Sequence[RemovalLicence]) -> str:
    told = [f"{max(row.share or 0.0, -1.0):.0%} ({row.removal})".replace("-", "−") for row in rows]
    return " and ".join(told)


WHY: dict[str, Callable[[Sequence[RemovalLicence]], str]] = {
    MAY: lambda rows: (
        "The largest scores are at tokens that matter to the prediction: they reach "
        f"{_reached(rows)} of what the best order does, and chance would reach none."
    ),
    MAY_NOT: lambda rows: (
        "The largest scores are not at the tokens that matter to the prediction: they reach "
        f"{_reached(rows)} of what the best order does, and chance would reach none."
    ),
}


def _why_it_cannot(rows: Sequence[RemovalLicence], count: int) -> str:
    if count < SHORTEST:
        return (
            f"The text has {count} content tokens, and every order of so few may be right by luck."
        )
    if len(rows) < 2:
        return "Tokens can be removed from this model's inputs in fewer than two ways."
    if any((row.best or 0.0) < LEAST for row in rows):
        return "No token matters more than another here, so there is nothing to point at."
    if {row.word for row in rows} == {MAY, MAY_NOT}:
        return f"The two removals disagree: the scores reach {_reached(rows)} of the best."
    if any(row.word == CANNOT and (row.share or 0.0) >= FLOOR and _is_luck(row) for row in rows):
        luck = max(row.p or 0.0 for row in rows)
        return (
            f"The scores reach {_reached(rows)} of the best, but so do {luck:.0%} of all orders of "
            "the same scores: it may be luck."
        )
    return "Which tokens matter here changes with the order in which they are removed."


def _is_luck(row: RemovalLicence) -> bool:
    return (row.p or 0.0) > LEVEL and (row.reliability or 0.0) >= RELIABLE
