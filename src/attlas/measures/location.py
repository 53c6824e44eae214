"""Location: whether the highest scores are at the tokens that matter, whichever way they pull."""

from attlas.mathematics.token_effects import capture
from attlas.measures.support.measure import Case, measure
from attlas.measures.support.walks import effects_of, walks
from attlas.removing.erasures import Outcomes


def best_location(case: Case, whole: Outcomes, outcomes: Outcomes) -> float:
    """The location of the order of what matters, found without what it is scored by."""
    return effects_of(case, outcomes).best_capture


def by_chance(case: Case, whole: Outcomes, outcomes: Outcomes) -> float:
    """Shuffled scores find as much as a random order: nothing beyond it."""
    return 0.0


@measure(
    better="higher",
    kind="faithfulness",
    needs=("removal",),
    by_rank=False,
    reading="How much of what matters to the prediction the largest scores come upon early, "
    "beyond a random order.",
    paper="Gini index of captured importance; importance as in Strumbelj & Kononenko 2014; "
    "Castro et al. 2009; Covert et al. 2021, arXiv:2011.14878",
    ways=walks,
    shares_ways=True,
    chance=by_chance,
    ceiling=best_location,
)
def location(case: Case, whole: Outcomes, outcomes: Outcomes) -> float:
    """The Gini index of captured importance; signs do not count, and equal scores share a rank."""
    return capture(case.scores, effects_of(case, outcomes).importance)
