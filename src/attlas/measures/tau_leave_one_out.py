"""Rank correlation with leave-one-out: whether tokens are ordered as the model misses them."""

import numpy as np

from attlas.mathematics.rank_agreement import kendall
from attlas.measures.support.measure import Case, measure
from attlas.removing.erasures import Outcomes, Ways


def each_alone(case: Case) -> Ways:
    """Every token by itself; no set if nothing would be left."""
    return np.eye(len(case), dtype=bool)[: len(case) if len(case) > 1 else 0]


@measure(
    better="higher",
    kind="faithfulness",
    needs=("removal",),
    by_rank=True,
    reading="Kendall's τ-b between the scores and what the model loses without each token.",
    paper="Jain & Wallace 2019, arXiv:1902.10186; Attanasio et al. 2023, arXiv:2208.01575",
    ways=each_alone,
)
def tau_leave_one_out(case: Case, whole: Outcomes, outcomes: Outcomes) -> float:
    """Kendall's τ-b of the scores with p(x) − p(x without the token).

    NaN where either is the same for all tokens.
    """
    # Logarithms order as probabilities do, and stay apart where those round to one.
    lost = whole.log_probability - outcomes.log_probability
    if len(lost) == 0 or np.ptp(lost) == 0 or np.ptp(case.scores) == 0:
        return np.nan
    return kendall(case.scores.astype(np.float64), lost)
