"""Remove tokens: the score without sets of them, and curves of three orders."""

from collections.abc import Sequence
from time import monotonic
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attlas.errors import UsageError
from attlas.explaining.explanations import explain
from attlas.measures import sizes
from attlas.removing.ceilings import best_orders
from attlas.removing.erasures import Erasures, Outcomes, Ways
from attlas.results import Explanation
from attlas.serving.requests import Curving, Removing
from attlas.serving.shelf import Shelf
from attlas.serving.work.asking import PosedInput, asked_of

ORDERS = 10  # random ones, of which the mean is shown
LEAST = 1e-6  # a smaller difference between the best order and a random one is rounding
TEXT = 0  # there is only one
RANDOM, AIM = "random", "comprehensiveness"


def answer_remove(shelf: Shelf, asking: Removing) -> dict[str, Any]:
    """The score of the whole text, and without each set of tokens."""
    begun = monotonic()
    erasures, target = _erasures(asked_of(shelf.subject(asking.model), asking), asking.removal)
    content = erasures.content(TEXT)
    found = erasures.of(TEXT, np.stack([_way(content, each) for each in asking.sets]))
    return {
        "target": target,
        "whole": _remainders(erasures.whole(TEXT))[0],
        "without": _remainders(found),
        "removable": content,
        "seconds": monotonic() - begun,
    }


def answer_curves(shelf: Shelf, asking: Curving) -> dict[str, Any]:
    """The score as tokens are removed in the method's order, in random ones, and in the best."""
    begun = monotonic()
    asked = asked_of(shelf.subject(asking.model), asking)
    found = explain(asked.subject, asked.text, asking.method, maps=False, **asked.arguments)
    erasures, target = _erasures(asked, asking.removal)
    content = erasures.content(TEXT)
    if len(content) < 2:
        raise UsageError("a curve needs at least two tokens that can be removed")
    counts = [0, *sizes(len(content)), len(content)]
    curves = [
        _curve(erasures, name, orders, counts)
        for name, orders in _orders(erasures, found, asking.seed).items()
    ]
    return {
        "target": target,
        "counts": counts,
        "curves": curves,
        "standing": _standing([each["mean"] for each in curves]),
        "seconds": monotonic() - begun,
    }


def _orders(erasures: Erasures, found: Explanation, seed: int) -> dict[str, NDArray[np.intp]]:
    """Orders of the content tokens, a row each: the method's, random ones, and the best."""
    scores = found.scores[erasures.content(TEXT)]
    random = np.random.default_rng(seed)
    best = best_orders(erasures, [TEXT], [AIM], sizes)[AIM][TEXT]
    return {
        found.method: np.argsort(-scores, kind="stable")[None],
        RANDOM: np.stack([random.permutation(len(scores)) for _ in range(ORDERS)]),
        "best": best.order[None],
    }


def _curve(
    erasures: Erasures, name: str, orders: NDArray[np.intp], counts: Sequence[int]
) -> dict[str, Any]:
    """The mean over these orders; that of random ones has no order of its own."""
    content = np.array(erasures.content(TEXT))
    scores = _scores(erasures, orders, counts)
    return {
        "name": name,
        "order": None if name == RANDOM else content[orders[0]].tolist(),
        "scores": _plain(scores),
        "mean": _plain(scores[1:-1].mean(keepdims=True))[0],
    }


def _erasures(asked: PosedInput, how: str) -> tuple[Erasures, str]:
    question = asked.question()
    return Erasures([question], how), question.targets[TEXT].name


def _way(content: Sequence[int], chosen: Sequence[int]) -> NDArray[np.bool_]:
    """A set of token numbers as marks over the content."""
    wrong = set(chosen) - set(content)
    if wrong:
        raise UsageError(f"token {min(wrong)} cannot be removed: it is special, or not there")
    marks: NDArray[np.bool_] = np.isin(content, list(chosen))
    return marks


def _remainders(found: Outcomes) -> list[dict[str, Any]]:
    pairs = zip(_plain(found.probability), found.chosen.tolist(), strict=True)
    return [{"score": score, "chosen": bool(chosen)} for score, chosen in pairs]


def _scores(
    erasures: Erasures, orders: NDArray[np.intp], counts: Sequence[int]
) -> NDArray[np.float64]:
    """The mean score over these orders without the first so many tokens of each."""
    ranks = np.argsort(orders, axis=1)
    ways: Ways = (ranks[:, None] < np.array(counts)[None, :, None]).reshape(-1, orders.shape[1])
    found = erasures.of(TEXT, ways).probability.reshape(len(orders), len(counts))
    mean: NDArray[np.float64] = found.mean(axis=0)
    return mean


def _standing(means: Sequence[float | None]) -> float | None:
    """Where the method's mean lies between the random one, 0, and the best one, 1."""
    own, random, best = means
    if own is None or random is None or best is None or random - best < LEAST:
        return None
    return (random - own) / (random - best)


def _plain(values: NDArray[np.float64]) -> list[float | None]:
    """Numbers as JSON has them: None where nothing is left of the text."""
    return [None if np.isnan(each) else float(each) for each in values]
