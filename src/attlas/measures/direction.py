"""Direction: of what an explanation names, how much speaks for the prediction."""

import numpy as np

from attlas.mathematics.token_effects import right_way
from attlas.measures.support.measure import Case, measure
from attlas.measures.support.walks import effects_of, walks
from attlas.removing.erasures import Outcomes


def by_chance(case: Case, whole: Outcomes, outcomes: Outcomes) -> float:
    """The mean of the direction over all shuffles of the scores, or nearly so without signs."""
    pull = np.nan_to_num(effects_of(case, outcomes).pull)
    total = float(np.abs(pull).sum())
    if len(case) < 2 or total == 0:
        return np.nan
    forward = float(pull[pull > 0].sum()) / total
    if not case.signed:
        return forward
    return float(np.mean(case.scores > 0)) * forward + float(np.mean(case.scores < 0)) * (
        1 - forward
    )


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
    chance=by_chance,
)
def direction(case: Case, whole: Outcomes, outcomes: Outcomes) -> float:
    """The share of Σ|φ| whose sign the scores have; without signs, of Σ score · |φ| with φ > 0."""
    if len(case) < 2:
        return np.nan
    return right_way(case.scores, effects_of(case, outcomes).pull, case.signed)
