"""Monotonicity: whether each token that comes back, the least important first, adds something."""

import numpy as np

from attlas.measures.support.measure import Case, measure
from attlas.measures.support.sizes import mean, tops
from attlas.removing.erasures import Outcomes


@measure(
    better="higher",
    kind="faithfulness",
    needs=("removal",),
    by_rank=True,
    reading="The share of steps in which the prediction's probability rises as tokens come back, "
    "lowest first.",
    paper="Luss et al. 2019, arXiv:1905.12698",
    ways=tops,
)
def monotonicity(case: Case, whole: Outcomes, outcomes: Outcomes) -> float:
    """The share of steps, from each size to the next smaller and last to the whole text, that rise.

    A step in which the probability stays the same is not a rise.
    """
    if len(outcomes.log_probability) == 0:
        return np.nan
    coming_back = [outcomes.log_probability[::-1], whole.log_probability]
    return mean((np.diff(np.concatenate(coming_back)) > 0).astype(np.float64))
