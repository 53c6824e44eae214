"""How much each token of a text matters, from random orders of removing them.

When a token goes, after those before it in the order, the predicted distribution moves (total
variation) and the target's probability falls (signed). The mean move over orders is how much the
token matters, whichever way it pulls: nothing cancels, and in some order every needed token is the
one that tips. The mean fall is which way it pulls: its Shapley value.
"""

from dataclasses import dataclass
from functools import cached_property

import numpy as np
from numpy.typing import NDArray

from attlas.shapes import TokenVector, WayDistributions, Ways, WayScores

MOST_STEPS = 64  # longer texts lose several tokens in a step
Orders = NDArray[np.intp]  # `[order, token]`: the step in which each token goes, from 0


def random_orders(count: int, pairs: int, seed: int) -> Orders:
    """Random orders of this many tokens, each followed by its reverse."""
    random = np.random.default_rng([seed, pairs])
    ranks = random.permuted(np.tile(np.arange(count), (pairs, 1)), axis=1)
    size = -(-count // MOST_STEPS)
    both = np.stack([ranks, count - 1 - ranks], axis=1)
    orders: Orders = both.reshape(2 * pairs, count) // max(size, 1)
    return orders


def removed_sets(orders: Orders) -> Ways:
    """The sets that are gone after each step of each order, from none to all."""
    steps = int(orders.max(initial=-1)) + 1
    gone = orders[:, None, :] < np.arange(steps + 1)[None, :, None]
    return gone.reshape(-1, orders.shape[1])


@dataclass(frozen=True, eq=False)
class TokenEffects:
    """What happens when a token goes, `[pair, token]`: means over an order and its reverse.

    NaN where nothing would have been left.
    """

    moves: NDArray[np.float64]  # of the distribution
    falls: NDArray[np.float64]  # of the target's probability

    @cached_property
    def importance(self) -> TokenVector:
        """How much each token matters, whichever way it pulls."""
        return _mean(self.moves)

    @cached_property
    def pull(self) -> TokenVector:
        """How far each token pulls towards the target, or away from it."""
        return _mean(self.falls)

    @cached_property
    def best_capture(self) -> float:
        """The capture of the best order, found without the pair of orders that it is scored on."""
        if min(self.moves.shape) < 2:
            return float("nan")
        total = np.nansum(self.moves, axis=0)
        known = (~np.isnan(self.moves)).sum(axis=0)
        own = np.nan_to_num(self.moves)
        left = np.maximum(known - ~np.isnan(self.moves), 1)
        others = (total - own) / left
        captures = [capture(order, pair) for order, pair in zip(others, self.moves, strict=True)]
        return float(np.mean(captures))


def token_effects(
    orders: Orders, probability: WayScores, distribution: WayDistributions
) -> TokenEffects:
    """The effects of each token, given the answers without each of `removed_sets(orders)`."""
    steps = len(probability) // len(orders) - 1
    table = distribution.reshape(len(orders), steps + 1, -1)
    moved = np.abs(np.diff(table, axis=1)).sum(axis=2) / 2
    fallen = -np.diff(probability.reshape(len(orders), steps + 1), axis=1)
    # The tokens of one step share its effect.
    sizes = np.stack([np.bincount(order, minlength=steps) for order in orders])
    effects = []
    for each in (moved, fallen):
        by_token = np.take_along_axis(each / sizes, orders, axis=1)
        effects.append(_mean(by_token.reshape(-1, 2, orders.shape[1]), axis=1))
    return TokenEffects(*effects)


def _mean(values: NDArray[np.float64], axis: int = 0) -> NDArray[np.float64]:
    """The mean of what is known; NaN where nothing is."""
    known = ~np.isnan(values)
    count = known.sum(axis=axis)
    total = np.where(known, values, 0.0).sum(axis=axis)
    mean: NDArray[np.float64] = np.divide(
        total, count, out=np.full(total.shape, np.nan), where=count > 0
    )
    return mean


def capture(scores: TokenVector, importance: TokenVector) -> float:
    """How much more importance the highest sizes of scores come upon early than a random order.

    The importance of the first k tokens, summed over k, less the same for a random order, and
    divided by what one token that alone matters would give: a single token of importance 0.8, found
    first, gives 0.8. Equal scores count as all their orders on average.
    """
    if len(scores) < 2:
        return float("nan")
    return float(np.nan_to_num(importance) @ precedence(scores))


def precedence(scores: TokenVector) -> TokenVector:
    """How early the sizes of at least two scores come: 1 first, −1 last, equal sizes alike."""
    _, group, sizes = np.unique(-np.abs(scores), return_inverse=True, return_counts=True)
    ranks = (np.cumsum(sizes) - (sizes - 1) / 2)[group]
    early: TokenVector = ((len(scores) + 1) / 2 - ranks) / ((len(scores) - 1) / 2)
    return early
