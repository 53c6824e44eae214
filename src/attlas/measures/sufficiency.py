"""Sufficiency: what the model loses when only the highest tokens stay."""

from attlas.measures.comprehensiveness import falls
from attlas.measures.support.measure import Case, measure
from attlas.measures.support.sizes import mean, tops
from attlas.removing.erasures import Outcomes, Ways


def all_but_tops(case: Case) -> Ways:
    """All tokens but the highest, a row for each size."""
    return ~tops(case)


@measure(
    better="lower",
    kind="faithfulness",
    needs=("removal",),
    by_rank=True,
    reading="How far the prediction's probability falls with the highest tokens alone.",
    paper="DeYoung et al. 2020, arXiv:1911.03429",
    ways=all_but_tops,
    curve=falls,
)
def sufficiency(case: Case, whole: Outcomes, outcomes: Outcomes) -> float:
    """The mean over sizes of p(x) − p(the top k alone)."""
    return mean(falls(case, whole, outcomes))
