"""Log-odds: what the model loses with the highest tokens, on the scale of logarithms."""

import numpy as np
from numpy.typing import NDArray

from attlas.measures.support.measure import Case, measure
from attlas.measures.support.sizes import mean, tops
from attlas.removing.erasures import Outcomes


def ratios(case: Case, whole: Outcomes, outcomes: Outcomes) -> NDArray[np.float64]:
    """The logarithm of what is left of the target's probability, for each size."""
    left: NDArray[np.float64] = outcomes.log_probability - whole.log_probability
    return left


@measure(
    better="lower",
    kind="faithfulness",
    needs=("removal",),
    by_rank=True,
    reading="The logarithm of the share of the prediction's probability that is left without the "
    "highest tokens.",
    paper="Shrikumar et al. 2017, arXiv:1704.02685; Chen & Ji 2020, arXiv:2010.00667",
    ways=tops,
    curve=ratios,
)
def log_odds(case: Case, whole: Outcomes, outcomes: Outcomes) -> float:
    """The mean over sizes of ln p(x without the top k) − ln p(x)."""
    return mean(ratios(case, whole, outcomes))
