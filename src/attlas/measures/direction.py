"""Direction: of what an explanation names, how much speaks for the prediction."""

import numpy as np

from attlas.measures.support.measure import Case, measure
from attlas.measures.support.walks import effects_of, walks
from attlas.removing.erasures import Outcomes


@measure(
    better="higher",
    kind="faithfulness",
    needs=("removal",),
    by_rank=False,
    reading="Of what matters, the share whose sign the scores have; for scores without a sign, the "
    "share of what they highlight that speaks for the prediction.",
    paper="The sign of the Shapley value; Covert et al. 2021, arXiv:2011.14878",
    ways=walks,
    shares_ways=True,
)
def direction(case: Case, whole: Outcomes, outcomes: Outcomes) -> float:
    """The share of Σ|φ| whose sign the scores have; without signs, of Σ score · |φ| with φ > 0."""
    if len(case) < 2:
        return np.nan
    pull = np.nan_to_num(effects_of(case, outcomes).pull)
    if case.signed:
        weights, right = np.abs(pull), np.sign(case.scores) == np.sign(pull)
    else:
        weights, right = np.abs(case.scores) * np.abs(pull), pull > 0
    total = float(weights.sum())
    return float(weights[right].sum()) / total if total > 0 else np.nan
