"""Comprehensiveness: what the model loses with the highest tokens."""

import numpy as np
from numpy.typing import NDArray

from attlas.measures.support.measure import Case, measure
from attlas.measures.support.sizes import mean, tops
from attlas.removing.erasures import Outcomes


def falls(case: Case, whole: Outcomes, outcomes: Outcomes) -> NDArray[np.float64]:
    """How far the target's probability falls, for each size."""
    fallen: NDArray[np.float64] = whole.probability - outcomes.probability
    return fallen


@measure(
    better="higher",
    kind="faithfulness",
    needs=("removal",),
    by_rank=True,
    reading="How far the prediction's probability falls without the highest tokens.",
    paper="DeYoung et al. 2020, arXiv:1911.03429",
    ways=tops,
    curve=falls,
)
def comprehensiveness(case: Case, whole: Outcomes, outcomes: Outcomes) -> float:
    """The mean over sizes of p(x) − p(x without the top k)."""
    return mean(falls(case, whole, outcomes))
