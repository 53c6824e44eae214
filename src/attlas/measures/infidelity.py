"""Infidelity: whether the scores of sets of tokens add up to what the model loses with them."""

from functools import lru_cache

import numpy as np

from attlas.measures.support.measure import Case, measure
from attlas.measures.support.sizes import mean
from attlas.removing.erasures import Outcomes, Ways

SETS = 50


def random_sets(case: Case) -> Ways:
    """Random sets of some of the tokens, the same sets for every explanation of a text."""
    return _drawn(len(case), case.seed)


@lru_cache(maxsize=512)
def _drawn(count: int, seed: int) -> Ways:
    random = np.random.default_rng(seed)
    if count < 2:
        return np.zeros((0, count), dtype=bool)
    drawn = random.permuted(np.tile(np.arange(count), (SETS, 1)), axis=1)
    sets = np.asarray(drawn < random.integers(1, count, size=(SETS, 1)))
    sets.setflags(write=False)
    return sets


@measure(
    better="lower",
    kind="faithfulness",
    needs=("removal",),
    by_rank=False,
    reading="The mean squared distance between the scores of sets of tokens, scaled to fit, and "
    "what the model loses without the sets.",
    paper="Yeh et al. 2019, arXiv:1901.09392",
    ways=random_sets,
)
def infidelity(case: Case, whole: Outcomes, outcomes: Outcomes) -> float:
    """The mean over sets of (β · their sum of scores − what p loses without them)².

    β is the scale, zero or more, that makes this smallest: scores that say the opposite of what
    happens are worth as much as no scores.
    """
    lost = whole.probability - outcomes.probability
    sums = random_sets(case) @ case.scores.astype(np.float64)
    size = float(sums @ sums)
    scale = max(float(sums @ lost) / size, 0.0) if size > 0 else 0.0
    return mean((scale * sums - lost) ** 2)
