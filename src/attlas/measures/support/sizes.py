"""How many of the highest tokens are taken, and which they are."""

import numpy as np
from numpy.typing import NDArray

from attlas.measures.support.measure import Case
from attlas.removing.erasures import Ways

EVERY = 50  # up to this many tokens, every size is asked for
PERCENT = (1, 5, 10, 20, 50)


def sizes(count: int) -> list[int]:
    """The numbers of tokens to take from a text of `count`: all, or five shares of a long text.

    Shares are rounded up, and equal numbers count once. All tokens together are the same set in
    every order, so they are left out, and a text of one token has no sizes.
    """
    if count <= EVERY:
        return list(range(1, count))
    return sorted({-(-count * percent // 100) for percent in PERCENT})


def tops(case: Case) -> Ways:
    """The highest tokens of a case, a row for each size."""
    rank = np.empty(len(case), dtype=np.intp)
    rank[case.order()] = np.arange(len(case))
    return rank[None] < np.array(sizes(len(case)), dtype=np.intp)[:, None]


def mean(figures: NDArray[np.float64]) -> float:
    """The mean over sizes, NaN where there are none."""
    return float(figures.mean()) if len(figures) else np.nan
