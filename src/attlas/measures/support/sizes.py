"""How many tokens are taken from the top of an order, and which those are."""

import numpy as np
from numpy.typing import NDArray

from attlas.measures.support.measure import Case
from attlas.removing.erasures import Ways

EVERY = 50  # up to this many tokens, every size is asked for
PERCENT = (1, 5, 10, 20, 50)


def sizes(count: int) -> list[int]:
    """How many of so many tokens are taken: every number, or of a long text five shares.

    Shares are rounded up, and those that come to the same number are one. All tokens together are
    the same set whatever the order, so that a text of one token has no sizes.
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
