"""Decision flip: how many tokens must go before the model chooses otherwise."""

import numpy as np

from attlas.measures.support.measure import Case, measure
from attlas.measures.support.sizes import sizes, tops
from attlas.removing.erasures import Outcomes


@measure(
    better="lower",
    kind="faithfulness",
    needs=("removal",),
    by_rank=True,
    reading="The share of tokens, highest first, that must go before the model chooses otherwise.",
    paper="Serrano & Smith 2019, arXiv:1906.03731",
    ways=tops,
)
def decision_flip(case: Case, whole: Outcomes, outcomes: Outcomes) -> float:
    """The smallest share of the highest tokens without which the model chooses otherwise.

    1 if no size changes the choice. For a long text only five sizes are tried.
    """
    counts = np.array(sizes(len(case)))
    if len(counts) == 0:
        return np.nan
    turned = counts[~outcomes.chosen]
    return float(turned[0] / len(case)) if len(turned) else 1.0
