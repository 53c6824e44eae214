"""How well scores rank true tokens above the others.

Equal scores say nothing about the order of their tokens. Each measure is therefore the expected
value with ties broken at random: scores that are all equal get what random scores get on average.
"""

from collections.abc import Iterator

import numpy as np
from scipy.stats import rankdata

from attlas.errors import UsageError
from attlas.shapes import TextMarks, TextValues, TokenMarks, TokenVector


def average_precision(scores: TokenVector, truth: TokenMarks) -> float:
    """The mean over the true tokens of the precision among all tokens ranked as high or higher."""
    _check(truth)
    total, before, true_before = 0.0, 0, 0
    for size, true in _tied(scores, truth):
        place = np.arange(size)
        # Before a true token, the expected share of the other tied tokens is true.
        above = true_before + 1 + place * (true - 1) / max(size - 1, 1)
        total += true / size * float((above / (before + 1 + place)).sum())
        before, true_before = before + size, true_before + true
    return total / true_before


def precision_at(scores: TokenVector, truth: TokenMarks, count: int) -> float:
    """The share of true tokens among the `count` highest."""
    _check(truth)
    if not 1 <= count <= len(scores):
        raise UsageError(f"the top {count} of {len(scores)} tokens: 1 to {len(scores)} are allowed")
    found, left = 0.0, count
    for size, true in _tied(scores, truth):
        taken = min(size, left)
        found += taken * true / size
        left -= taken
    return found / count


def _check(truth: TokenMarks) -> None:
    if not truth.any():
        raise UsageError("no token is marked as true, so there is nothing to rank")


def _tied(scores: TokenVector, truth: TokenMarks) -> Iterator[tuple[int, int]]:
    """From the top, each group of equal scores: how many tokens it has, and how many are true."""
    _, group = np.unique(-scores, return_inverse=True)
    sizes = np.bincount(group)
    trues = np.bincount(group, weights=truth)
    yield from ((int(size), round(true)) for size, true in zip(sizes, trues, strict=True))


def roc_auc(scores: TextValues, truth: TextMarks) -> float:
    """The chance that a true item scores above a false one; NaN if there is none of either."""
    true, false = int(truth.sum()), int((~truth).sum())
    if not true or not false:
        return float("nan")
    ranks = rankdata(scores)
    return float((ranks[truth].sum() - true * (true + 1) / 2) / (true * false))
