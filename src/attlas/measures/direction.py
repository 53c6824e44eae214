"""Direction: of what an explanation names, how much speaks for the prediction."""

import numpy as np

from attlas.mathematics.token_effects import right_way
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
    return right_way(case.scores, effects_of(case, outcomes).pull, case.signed)
