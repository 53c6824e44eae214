"""How much each token of a text matters, from random orders of removing them.

When a token goes, after those before it in the order, the predicted distribution moves (total
variation) and the target's probability falls (signed). The mean move over orders is how much the
token matters, whichever way it pulls: nothing cancels, and in some order every needed token is the
one that tips. The mean fall is which way it pulls: its Shapley value.
"""

from dataclasses import dataclass
from functools import cached_property, lru_cache
from itertools import permutations

import numpy as np
from numpy.typing import NDArray

from attlas.shapes import TokenVector, WayDistributions, Ways, WayScores

MOST_STEPS = 64  # longer texts lose several tokens in a step
MOST_EXACT = 7  # texts of up to so many tokens are compared with all orders of their scores
DRAWN = 9999  # orders that longer texts are compared with
SHARINGS = 10  # rounds in which tokens that go together divide the effect of their step
EVEN = 0.1  # of the mean importance is added to each share, so that no token is given up early
Orders = NDArray[np.intp]  # `[order, token]`: the step in which each token goes, from 0


def random_orders(count: int, pairs: int, seed: int) -> Orders:
    """Random orders of this many tokens, each followed by its reverse."""
    random = np.random.default_rng([seed, pairs])
    ranks = random.permuted(np.tile(np.arange(count), (pairs, 1)), axis=1)
    both = np.stack([ranks, count - 1 - ranks], axis=1)
    orders: Orders = both.reshape(2 * pairs, count) // step_size(count)
    return orders


def step_size(count: int) -> int:
    """How many of this many tokens go in one step."""
    return max(-(-count // MOST_STEPS), 1)


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
    # For each pair, the importance that the other pairs show, and the moves of the pair itself as
    # they would divide them; None if tokens go one by one, and nothing is divided.
    apart: tuple[NDArray[np.float64], NDArray[np.float64]] | None = None

    @cached_property
    def importance(self) -> TokenVector:
        """How much each token matters, whichever way it pulls."""
        return _mean(self.moves)

    @cached_property
    def pull(self) -> TokenVector:
        """How far each token pulls towards the target, or away from it."""
        return _mean(self.falls)

    @cached_property
    def best_captures(self) -> NDArray[np.float64]:
        """For each pair of orders, the capture of the best order that the other pairs show."""
        if min(self.moves.shape) < 2:
            return np.empty(0)
        both = zip(*(self.apart or (self._others(), self.moves)), strict=True)
        return np.array([capture(order, pair) for order, pair in both])

    def _others(self) -> NDArray[np.float64]:
        """For each pair, the mean of all others."""
        known = ~np.isnan(self.moves)
        left = np.maximum(known.sum(axis=0) - known, 1)
        others: NDArray[np.float64] = (
            np.nansum(self.moves, axis=0) - np.nan_to_num(self.moves)
        ) / left
        return others

    @cached_property
    def best_capture(self) -> float:
        """The capture of the best order, found without the pair of orders that it is scored on."""
        return float(self.best_captures.mean()) if len(self.best_captures) else float("nan")

    @cached_property
    def reliability(self) -> float:
        """How alike other orders would find the importance: 1 the same, 0 nothing but noise.

        The part of its spread over tokens that is not the noise of the orders (Cronbach's α).
        """
        pairs, tokens = self.moves.shape
        if min(pairs, tokens) < 2:
            return float("nan")
        known = np.nan_to_num(self.moves)
        by_token, by_pair = known.mean(axis=0), known.mean(axis=1, keepdims=True)
        noise = float(((known - by_token - by_pair + known.mean()) ** 2).sum())
        spread = pairs * float(by_token.var(ddof=1))
        if spread <= 0:
            return 0.0
        return float(max(0.0, 1 - noise / ((pairs - 1) * (tokens - 1)) / spread))


def token_effects(
    orders: Orders, probability: WayScores, distribution: WayDistributions
) -> TokenEffects:
    """The effects of each token, given the answers without each of `removed_sets(orders)`."""
    steps = len(probability) // len(orders) - 1
    table = distribution.reshape(len(orders), steps + 1, -1)
    moved = np.abs(np.diff(table, axis=1)).sum(axis=2) / 2
    fallen = -np.diff(probability.reshape(len(orders), steps + 1), axis=1)
    if steps == orders.shape[1]:
        moves, falls = (np.take_along_axis(each, orders, axis=1) for each in (moved, fallen))
        return TokenEffects(_pairs(moves), _pairs(falls))
    weights = _share(moved, orders)
    moves, falls = (_divide(each, orders, weights) for each in (moved, fallen))
    return TokenEffects(_pairs(moves), _pairs(falls), _divide_apart(moved, orders))


def _pairs(by_order: NDArray[np.float64]) -> NDArray[np.float64]:
    """`[pair, token]`: means over each order and its reverse."""
    return _mean(by_order.reshape(-1, 2, by_order.shape[1]), axis=1)


def _share(effects: NDArray[np.float64], orders: Orders) -> TokenVector:
    """The weights by which tokens that go in one step divide its effect, `[order, step]`.

    A token that matters matters in all orders, beside ever others: so its weight is its importance,
    which is found by dividing the effects again and again.
    """
    weights = np.ones(orders.shape[1])
    for _ in range(SHARINGS):
        found = np.nan_to_num(_mean(_divide(effects, orders, weights)))
        weights = found + EVEN * found.mean() if found.any() else np.ones_like(found)
    return weights


def _divide(
    effects: NDArray[np.float64], orders: Orders, weights: TokenVector
) -> NDArray[np.float64]:
    """The effects of steps, `[order, step]`, divided among the tokens: `[order, token]`."""
    count, steps = effects.shape
    places = orders + steps * np.arange(count)[:, None]
    given = np.broadcast_to(weights, orders.shape)
    totals = np.bincount(places.ravel(), given.ravel(), minlength=count * steps)
    divided: NDArray[np.float64] = (effects.ravel() / totals)[places] * weights
    return divided


def _divide_apart(
    moved: NDArray[np.float64], orders: Orders
) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """For each pair of orders, what the other pairs show, and the pair divided by their weights."""
    pair = np.arange(len(orders)) // 2
    others, own = np.full((2, len(orders) // 2, orders.shape[1]), np.nan)
    for number in range(len(others)):
        rest, here = pair != number, pair == number
        weights = _share(moved[rest], orders[rest])
        others[number] = _mean(_divide(moved[rest], orders[rest], weights))
        own[number] = _mean(_divide(moved[here], orders[here], weights))
    return others, own


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
    return float(_known(importance) @ precedence(scores))


def _known(values: TokenVector) -> TokenVector:
    """Zero where nothing is known; `nan_to_num` is slow on few values."""
    return np.where(np.isnan(values), 0.0, values)


def precedence(scores: TokenVector) -> TokenVector:
    """How early the sizes of at least two scores come: 1 first, −1 last, equal sizes alike."""
    sizes = np.abs(scores)
    upwards = np.sort(sizes)
    below, up_to = (np.searchsorted(upwards, sizes, side) for side in ("left", "right"))
    early: TokenVector = (below - (len(sizes) - up_to)) / (len(sizes) - 1)
    return early


def capture_p(scores: TokenVector, importance: TokenVector) -> float:
    """How often an order of these scores that was drawn by chance captures as much.

    Up to MOST_EXACT tokens, the share of all orders that do; else (b + 1) / (B + 1) if b of B drawn
    orders do.
    """
    if len(scores) < 2:
        return float("nan")
    worth, early = _known(importance), precedence(scores)
    reached = float(worth @ early) - 1e-12
    if len(scores) <= MOST_EXACT:
        return float(np.mean(early[_all_orders(len(scores))] @ worth >= reached))
    ahead = int((early[_drawn_orders(len(scores))] @ worth >= reached).sum())
    return (ahead + 1) / (DRAWN + 1)


@lru_cache(maxsize=MOST_EXACT)
def _all_orders(count: int) -> NDArray[np.intp]:
    return np.array(list(permutations(range(count))), dtype=np.intp)


@lru_cache(maxsize=4)
def _drawn_orders(count: int) -> NDArray[np.int32]:
    straight = np.tile(np.arange(count, dtype=np.int32), (DRAWN, 1))
    drawn: NDArray[np.int32] = np.random.default_rng(count).permuted(straight, axis=1)
    return drawn


def right_way(scores: TokenVector, pull: TokenVector, signed: bool) -> float:
    """The share of all pull whose sign the scores have; NaN where nothing pulls.

    Scores without a sign are asked which share of what they highlight speaks for the target.
    """
    known = _known(pull)
    if signed:
        weights, right = np.abs(known), np.sign(scores) == np.sign(known)
    else:
        weights, right = np.abs(scores) * np.abs(known), known > 0
    total = float(weights.sum())
    return float(weights[right].sum()) / total if total > 0 else float("nan")
