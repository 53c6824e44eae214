"""Top token drop: what the model loses with the highest token."""

import numpy as np

from attlas.registering import Case, Outcomes, Ways, measure


def top_token(case: Case) -> Ways:
    """The highest token, as the one set to remove; no set for a text of one token."""
    sets = np.zeros((1, len(case)), dtype=bool)
    sets[0, case.order()[:1]] = True
    return sets if len(case) > 1 else sets[:0]


@measure(
    better="higher",
    kind="faithfulness",
    needs=("removal",),
    by_rank=True,
    reading="How far the prediction's probability falls without the highest token.",
    paper="DeYoung et al. 2020, arXiv:1911.03429",
    ways=top_token,
)
def top_token_drop(case: Case, whole: Outcomes, outcomes: Outcomes) -> float:
    """p(x) − p(x without its highest token)."""
    drops = whole.probability - outcomes.probability
    return float(drops[0]) if len(drops) else np.nan
