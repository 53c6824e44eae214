"""What random orders of removal show of each token, once for all explanations of a text."""

from functools import lru_cache

from attlas.mathematics.token_effects import (
    Orders,
    TokenEffects,
    random_orders,
    removed_sets,
    token_effects,
)
from attlas.measures.support.measure import Case
from attlas.removing.erasures import Outcomes, Ways


def walks(case: Case) -> Ways:
    """The sets that are gone after each step of some random orders."""
    return _sets(len(case), case.pairs, case.seed)


@lru_cache(maxsize=256)
def _orders(count: int, pairs: int, seed: int) -> Orders:
    return random_orders(count, pairs, seed)


@lru_cache(maxsize=64)
def _sets(count: int, pairs: int, seed: int) -> Ways:
    sets = removed_sets(_orders(count, pairs, seed))
    sets.setflags(write=False)
    return sets


def effects_of(case: Case, outcomes: Outcomes) -> TokenEffects:
    """The effects of each token, computed once for the outcomes of a text."""
    if "effects" not in outcomes.known:
        orders = _orders(len(case), case.pairs, case.seed)
        outcomes.known["effects"] = token_effects(
            orders, outcomes.probability, outcomes.distribution
        )
    found: TokenEffects = outcomes.known["effects"]
    return found
