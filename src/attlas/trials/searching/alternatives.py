"""Other weights with the same output: how far a row of attention can go and nothing be seen of it.

The rows of weights that are not negative, sum to the same and mix the values to the same vector
are a polytope. The one farthest from a given row is a corner of it; corners are found by linear
programmes, each towards the side on which the last one lay.
"""

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray
from scipy.optimize import linprog

from attlas.shapes import KeyValues, KeyVector

DRAWN = 8  # sides that are drawn in each of two ways
NAMED = 16  # keys that weight is moved to, one after the other
CLIMBS = 6  # corners that are gone on from
STEPS = 12
PRECISE = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


@dataclass(frozen=True, eq=False)
class Alternative:
    """Other weights over the same keys, and how far the output that they mix is from the same."""

    weights: KeyVector
    distance: float  # from the given weights, as a total variation
    error: float  # the largest difference of a feature of the output


def farthest_alternative(weights: KeyVector, values: KeyValues, seed: int = 0) -> Alternative:
    """The farthest row found that is not negative, sums to the same and has the same output.

    It is the row itself where there is no other. How far is half the sum of the differences; a
    search from several sides, drawn by `seed`, does not promise that nothing is farther.
    """
    held = _held_directions(values)
    best = weights
    if held.shape[1] < len(weights):
        best = _search(weights, held, seed)
    error = np.abs((best - weights) @ values).max(initial=0.0)
    return Alternative(best, _apart(best, weights), float(error))


def _search(weights: KeyVector, held: NDArray[np.float64], seed: int) -> KeyVector:
    """The farthest corner of those on some sides, and of those above the best of them."""
    corners = [_corner(weights, held, side) for side in _sides(weights, seed)]
    best = {round(_apart(corner, weights), 9): corner for corner in (weights, *corners)}
    climbed = [_climb(weights, held, best[far]) for far in sorted(best, reverse=True)[:CLIMBS]]
    return max(climbed, key=lambda corner: _apart(corner, weights))


def _sides(weights: KeyVector, seed: int) -> list[KeyVector]:
    """Where to look: away from the weight or some of it, towards where it is least, anywhere."""
    draw = np.random.default_rng(seed)
    some = draw.choice([0.0, 1.0], size=(DRAWN, len(weights)))
    anywhere = draw.choice([-1.0, 1.0], size=some.shape)
    least = np.eye(len(weights))[np.argsort(weights)[:NAMED]]
    return [-weights, *(-weights * some), *least, *anywhere]


def _climb(weights: KeyVector, held: NDArray[np.float64], found: KeyVector) -> KeyVector:
    """A corner with none farther on its own side: each step goes farther, or is the last."""
    for _ in range(STEPS):
        corner = _corner(weights, held, np.sign(found - weights))
        if _apart(corner, weights) <= _apart(found, weights) + 1e-9:
            break
        found = corner
    return found


def _corner(weights: KeyVector, held: NDArray[np.float64], side: KeyVector) -> KeyVector:
    """The weights that lie farthest along a side, with everything kept that must be."""
    kept = {"A_eq": held.T, "b_eq": held.T @ weights}
    solved = linprog(-side, **kept, bounds=(0, None), options=PRECISE)
    if solved.x is None:  # rounding has closed what little room there was
        return weights
    exact = weights + _outside(held, solved.x - weights)
    positive = np.clip(exact, 0.0, None)
    found: KeyVector = positive * (weights.sum() / positive.sum())
    return found


def _held_directions(values: KeyValues) -> NDArray[np.float64]:
    """Orthonormal directions in which the weights may not move: of the values, and their sum."""
    constant = np.ones((len(values), 1))
    scale = np.abs(values).max(initial=0.0) or 1.0
    left, singular, _ = np.linalg.svd(np.hstack([values / scale, constant]), full_matrices=False)
    smallest = max(values.shape) * np.finfo(np.float64).eps * singular[0]
    directions: NDArray[np.float64] = left[:, singular > smallest]
    return directions


def _outside(held: NDArray[np.float64], step: KeyVector) -> KeyVector:
    """The part of a step that moves nothing that is held."""
    free: KeyVector = step - held @ (held.T @ step)
    return free


def _apart(first: KeyVector, second: KeyVector) -> float:
    return float(np.abs(first - second).sum() / 2)
