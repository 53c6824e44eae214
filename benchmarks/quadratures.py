"""Rules for an integral from 0 to 1: where to take gradients, and the share of each."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.polynomial import legendre

Numbers = np.ndarray
FINE = (np.arange(480) + 0.5) / 480  # where a fitted curve is summed
EVEN = 0.3  # this share of the points follows length, the rest how far the target moves


@dataclass(frozen=True, eq=False)
class Rule:
    """Places and shares, and the number of forward passes that found them."""

    name: str
    places: Numbers
    shares: Numbers
    probes: int = 0

    def cost(self, gradient: int) -> int:
        """The cost in forward passes, if a gradient takes `gradient` of them."""
        return gradient * len(self.places) + self.probes


def midpoint(count: int) -> Rule:
    return Rule(f"midpoint {count}", (np.arange(count) + 0.5) / count, np.full(count, 1 / count))


def right(count: int) -> Rule:
    return Rule(f"right {count}", np.arange(1, count + 1) / count, np.full(count, 1 / count))


def gauss(count: int) -> Rule:
    places, shares = legendre.leggauss(count)
    return Rule(f"Gauss {count}", (places + 1) / 2, shares / 2)


def squared(count: int) -> Rule:
    """Gauss points of t, if the share of the attention is t²."""
    rule = gauss(count)
    return Rule(f"squared {count}", rule.places**2, 2 * rule.places * rule.shares)


def angles(count: int) -> Rule:
    """Midpoints of an angle; the share of the attention is half of 1 - cosine of it."""
    return through(f"angles {count}", (1 - np.cos(midpoint(count).places * np.pi)) / 2)


def cosines(count: int) -> Rule:
    """Equal steps of such an angle without its ends; twice as many steps contain them."""
    angle = np.arange(1, count + 1) / (count + 1) * np.pi
    return through(f"cosines {count}", (1 - np.cos(angle)) / 2)


@lru_cache
def extended(count: int) -> Rule:
    """Three Gauss points, and the best 4, 8, 16, … points to add (Kronrod, Patterson)."""
    places = legendre.leggauss(3)[0]
    while len(places) < count:
        more = len(places) + 1
        at, shares = legendre.leggauss(2 * more + 10)
        known = shares * np.prod(2 * (at - places[:, None]), axis=0)
        table = legendre.legvander(at, more)
        system = (table[:, :more].T * known) @ table  # orthogonal to everything of lower degree
        lower = np.linalg.solve(system[:, :more], -system[:, more])
        places = np.sort(np.append(places, legendre.legroots(np.append(lower, 1)).real))
    return through(f"extended {count}", (places + 1) / 2)


def simpson(count: int) -> Rule:
    shares = np.where(np.arange(count) % 2, 4.0, 2.0)
    shares[[0, -1]] = 1.0
    return Rule(f"Simpson {count}", np.linspace(0, 1, count), shares / shares.sum())


def radau(count: int, end: int) -> Rule:
    """The best rule that contains this end."""
    inner = legendre.legroots(_radau_polynomial(count)).real
    inner = np.sort(inner if end == 0 else -inner)
    places = np.clip((inner + 1) / 2, 0, 1)
    return through(f"Radau at {end}, {count}", places)


def _radau_polynomial(count: int) -> Numbers:
    """The sum of two Legendre polynomials that is zero at -1 and orthogonal to lower degrees."""
    return np.array([0.0] * (count - 1) + [1.0, 1.0])


def through(name: str, places: Numbers) -> Rule:
    """The rule with these places that is exact for every polynomial through them."""
    table = legendre.legvander(2 * places - 1, len(places) - 1).T
    return Rule(name, places, np.linalg.solve(table, np.eye(len(places))[0]))


def placed(target: Numbers, count: int) -> Rule:
    """One midpoint in each of some intervals in which the target moves equally far.

    `target` holds its values at equal distances from 0 to 1. Every rule knows both ends.
    """
    moved = np.abs(np.diff(target))
    share = (1 - EVEN) * moved / max(moved.sum(), 1e-30) + EVEN / len(moved)
    reached = np.append(0, np.cumsum(share))
    edges = np.linspace(0, reached[-1], count + 1)
    edges = np.interp(edges, reached, np.linspace(0, 1, len(target)))
    name = f"placed {count} by {len(moved)}"
    return Rule(name, (edges[1:] + edges[:-1]) / 2, np.diff(edges), len(moved) - 1)


@dataclass(frozen=True, eq=False)
class Odds:
    """The log-odds of the target at some places, their slopes there, and both ends."""

    values: Numbers
    slopes: Numbers
    ends: tuple[float, float]


def by_odds(rule: Rule, odds: Odds, basis: Callable[[Numbers], Numbers]) -> Numbers:
    """The shares of the gradients of the *log-odds*, if the target is the probability.

    The gradient of a probability p is p(1 - p) times that of its log-odds. The first factor
    switches; it follows from the curve of the log-odds, fitted through known values and slopes. The
    second one is smooth, and is interpolated between the places.
    """
    size = spread(curve(rule.places, odds, FINE))
    found: Numbers = (basis(rule.places) * size).mean(axis=1)
    return found


def spread(log_odds: Numbers) -> Numbers:
    """p(1 - p): how fast a probability moves with its log-odds."""
    chance = 1 / (1 + np.exp(-np.clip(log_odds, -60, 60)))
    moved: Numbers = chance * (1 - chance)
    return moved


def curve(places: Numbers, odds: Odds, at: Numbers) -> Numbers:
    """Cubics through values and slopes; parabolas at the ends, where no slope is known."""
    x = np.concatenate([[0], places, [1]])
    y = np.concatenate([odds.ends[:1], odds.values, odds.ends[1:]])
    steps, rises = np.diff(x), np.diff(y)
    first = 2 * rises[0] / steps[0] - odds.slopes[0]
    last = 2 * rises[-1] / steps[-1] - odds.slopes[-1]
    slopes = np.concatenate([[first], odds.slopes, [last]])
    piece = np.clip(np.searchsorted(x, at, side="right") - 1, 0, len(steps) - 1)
    step, t = steps[piece], (at - x[piece]) / steps[piece]
    rise = (3 * t**2 - 2 * t**3) * rises[piece]
    leaving = (t**3 - 2 * t**2 + t) * step * slopes[piece]
    arriving = (t**3 - t**2) * step * slopes[piece + 1]
    found: Numbers = y[piece] + rise + leaving + arriving
    return found


def polynomial(places: Numbers) -> Numbers:
    """For each place, the polynomial that is 1 there and 0 at the others, `[place, fine]`."""
    return _polynomial(tuple(places.tolist()))


@lru_cache(maxsize=64)
def _polynomial(places: tuple[float, ...]) -> Numbers:
    table = legendre.legvander(2 * np.array(places) - 1, len(places) - 1)
    return np.linalg.solve(table.T, legendre.legvander(2 * FINE - 1, len(places) - 1).T)


def straight(places: Numbers) -> Numbers:
    """For each place, the straight lines to its neighbours; the outer ones are extended."""
    left = np.clip(np.searchsorted(places, FINE) - 1, 0, len(places) - 2)
    t = (FINE - places[left]) / (places[left + 1] - places[left])
    found = np.zeros((len(places), len(FINE)))
    found[left, np.arange(len(FINE))] = 1 - t
    found[left + 1, np.arange(len(FINE))] = t
    return found


FIXED: Sequence[Rule] = (
    right(20),
    *(midpoint(count) for count in (2, 3, 4, 5, 6, 8, 9, 12, 16, 24, 36, 108)),
    *(gauss(count) for count in (2, 3, 4, 5, 6, 8, 12, 16, 20, 36)),
)
NESTED: dict[str, Sequence[Rule]] = {  # each rule's places are among those of the next
    "tripled": [midpoint(count) for count in (4, 12, 36, 108)],
    "extended": [extended(count) for count in (3, 7, 15, 31, 63)],
    "cosines": [cosines(count) for count in (3, 7, 15, 31, 63)],
}
FEW: Sequence[Rule] = tuple(
    rule
    for count in (3, 4, 5)
    for rule in (
        squared(count),
        angles(count),
        *([cosines(count)] if count > 3 else []),
        radau(count, 0),
        radau(count, 1),
        *([simpson(count)] if count % 2 else []),
    )
) + tuple(rule for each in ("extended", "cosines") for rule in NESTED[each])
