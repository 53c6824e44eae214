"""Another attention for one text, as far as possible from the model's, with the same output.

The rows of weights that are not negative, have the same sum and mix the values to the same vector
form a polytope. The one farthest from a given row is a corner of it. Corners are found by linear
programs, each in the direction in which the last one lay.
"""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from scipy.optimize import linprog
from torch import Tensor

from attlas.methods.effective_attention import head_values
from attlas.models.asking.filling import fillers
from attlas.models.asking.question import Question
from attlas.models.asking.reading import fold_attention
from attlas.models.tap.edits import Edit
from attlas.results import Site
from attlas.results.support import plots
from attlas.shapes import KeyValues, KeyVector
from attlas.trials.support.outputs import distributions, total_variation
from attlas.trials.support.scope import Scope
from attlas.trials.support.trial import seed_for
from attlas.views.units import layer_names

LEAST = 1e-6  # total variation; less is rounding
DRAWN = 8  # random directions, drawn in each of two ways
NAMED = 16  # least attended keys that weight is moved to, one after the other
CLIMBS = 6  # corners from which the search continues
STEPS = 12
PRECISE = {"primal_feasibility_tolerance": 1e-10, "dual_feasibility_tolerance": 1e-10}


@dataclass(frozen=True, eq=False)
class OtherAttention:
    """A row of attention in every head of a site, and other weights that give the same output."""

    text: int
    site: Site
    row: int
    tokens: tuple[str, ...]  # the keys
    query: str
    weights: NDArray[np.float64]  # the model's own, `[head, key]`
    others: NDArray[np.float64]
    distances: NDArray[np.float64]  # `[head]`, total variation
    error: float  # the largest difference of the values that they mix
    moved: float  # how far the model's answer moves with the other weights
    layer: str  # what readers call the site

    @property
    def is_other(self) -> bool:
        """Whether other weights were found, beyond rounding."""
        return bool(self.distances.max() > LEAST)

    def sentence(self, searched: int) -> str:
        """The outcome in words, for a search on this many texts."""
        if not self.is_other:
            return (
                "No other valid attention with the same output was found on the "
                f"{searched} texts with the most freedom."
            )
        return (
            f"On text {self.text}, another valid attention at {self.layer}, up to "
            f"{self.distances.max():.2f} away (total variation), gives the same output within "
            f"{self.error:.0e}."
        )

    def plots(self) -> tuple[plots.Plot, ...]:
        """Both attentions side by side; nothing if no other was found."""
        if not self.is_other:
            return ()
        shown = plots.maps(
            f"Two attentions with one output: text {self.text}, {self.layer}, the row of "
            f"{self.query}",
            [f"head {head}" for head in range(len(self.weights))],
            self.tokens,
            {"the model's": self.weights, "another with the same output": self.others},
            reading="Each row is a head. Both attentions are valid, and the model answers the same "
            f"with either: the values they mix differ by at most {self.error:.0e}.",
        )
        return (shown,)

    def to_dict(self) -> dict[str, Any]:
        """Everything as JSON."""
        return {
            "text": self.text,
            "site": self.site.name,
            "row": self.row,
            "tokens": list(self.tokens),
            "weights": self.weights.tolist(),
            "others": self.others.tolist(),
            "distances": self.distances.tolist(),
            "error": self.error,
            "answer moved": self.moved,
        }


def find_other_attention(
    question: Question,
    number: int,
    scope: Scope,
    seed: int,
    watch: Callable[[float, float], None] = lambda *_: None,
) -> OtherAttention:
    """Other weights for one text, in every head, in the row from which the answer is read most.

    They are at the last site of the scope. Only the keys that the scope opens may change, so the
    weight on the other keys stays, and so does the sum over the open ones. `watch` is told of each
    head how far its other weights are, and how far the output moves with them.
    """
    one = question.rows([number])
    opened = scope.open_sites(one)[-1]
    folded = fold_attention(
        one, lambda call: (call.weights[0], head_values(call)[0], call.visible[0]), [opened.site]
    )
    ((weights, values, visible),) = folded.held
    row = _most_read(opened.rows[0], folded.readout[0])
    free = visible[:, row] & opened.keys[0]
    found = []
    for head in range(len(weights)):
        own = seed_for(seed, one.order[0], f"{head}")
        found.append(_other(weights[head, row], values[head], free[head % len(free)], own))
        watch(*found[-1][1:])
    others = np.stack([each for each, _, _ in found])
    queries, keys = one.inputs.queries_and_keys(opened.site.kind)
    labels = one.inputs.tokens[0].labels()
    shown = keys.stop - keys.start - fillers(one.inputs.tokens[0])
    return OtherAttention(
        one.order[0],
        opened.site,
        row,
        labels[keys.start : keys.start + shown],
        labels[queries.start + row],
        _numbers(weights[:, row])[:, :shown],
        others[:, :shown],
        np.array([distance for _, distance, _ in found]),
        max(error for _, _, error in found),
        _moved(one, opened.site, row, others),
        layer_names(site.name for site in question.subject.sites)[opened.site.name],
    )


def _other(
    weights: Tensor, values: Tensor, free: Tensor, seed: int
) -> tuple[NDArray[np.float64], float, float]:
    """The other weights of one head, their distance, and the error of the output."""
    places = free.nonzero()[:, 0].cpu().numpy()
    own = _numbers(weights)
    found = farthest_alternative(own[places], _numbers(values)[places], seed)
    own[places] = found.weights
    return own, found.distance, found.error


def _most_read(rows: Tensor, readout: Tensor) -> int:
    """The row in the scope from which the answer is read most; if none is read, the last row."""
    places = rows.nonzero()[:, 0]
    read = readout[places]
    return int(places[int(read.argmax())] if bool(read.any()) else places[-1])


def _moved(question: Question, site: Site, row: int, others: NDArray[np.float64]) -> float:
    """How far the model's answer moves with the other weights."""

    def change(weights: Tensor, _: Tensor) -> Tensor:
        new = weights.clone()
        new[:, :, row] = torch.from_numpy(others).to(new)
        return new

    clean = distributions(question)
    edit = Edit("other attention", change).at(kind=site.kind, layer=site.layer, queries=row)
    with question.subject.tap(edit, sites=()):
        changed = distributions(question)
    return float(total_variation(clean, changed)[0])


def _numbers(tensor: Tensor) -> NDArray[np.float64]:
    return tensor.double().cpu().numpy().copy()


@dataclass(frozen=True, eq=False)
class Alternative:
    """Other weights over the same keys, and the error of the output that they mix."""

    weights: KeyVector
    distance: float  # from the given weights, as a total variation
    error: float  # the largest difference of a feature of the output


def farthest_alternative(weights: KeyVector, values: KeyValues, seed: int = 0) -> Alternative:
    """The farthest row found that is not negative and has the same sum and the same output.

    It is the row itself if there is no other. The distance is half the sum of the differences. The
    search goes in several directions, drawn by `seed`, and may miss a row that is farther away.
    """
    held = _held_directions(values)
    best = weights
    if held.shape[1] < len(weights):
        best = _search(weights, held, seed)
    error = np.abs((best - weights) @ values).max(initial=0.0)
    return Alternative(best, _apart(best, weights), float(error))


def _search(weights: KeyVector, held: NDArray[np.float64], seed: int) -> KeyVector:
    """The farthest corner in some directions, and then from the best of these corners on."""
    corners = [_corner(weights, held, side) for side in _sides(weights, seed)]
    best = {round(_apart(corner, weights), 9): corner for corner in (weights, *corners)}
    climbed = [_climb(weights, held, best[far]) for far in sorted(best, reverse=True)[:CLIMBS]]
    return max(climbed, key=lambda corner: _apart(corner, weights))


def _sides(weights: KeyVector, seed: int) -> list[KeyVector]:
    """Directions: away from all or some of the weight, towards the least keys, and random ones."""
    draw = np.random.default_rng(seed)
    subsets = draw.choice([0.0, 1.0], size=(DRAWN, len(weights)))
    anywhere = draw.choice([-1.0, 1.0], size=subsets.shape)
    least = np.eye(len(weights))[np.argsort(weights)[:NAMED]]
    return [-weights, *(-weights * subsets), *least, *anywhere]


def _climb(weights: KeyVector, held: NDArray[np.float64], found: KeyVector) -> KeyVector:
    """Step from corner to corner in the direction of the last one, until none is farther."""
    for _ in range(STEPS):
        corner = _corner(weights, held, np.sign(found - weights))
        if _apart(corner, weights) <= _apart(found, weights) + 1e-9:
            break
        found = corner
    return found


def _corner(weights: KeyVector, held: NDArray[np.float64], side: KeyVector) -> KeyVector:
    """The valid weights that lie farthest in a direction."""
    kept = {"A_eq": held.T, "b_eq": held.T @ weights}
    solved = linprog(-side, **kept, bounds=(0, None), options=PRECISE)
    if solved.x is None:  # no room left after rounding
        return weights
    exact = weights + _outside(held, solved.x - weights)
    positive = np.clip(exact, 0.0, None)
    found: KeyVector = positive * (weights.sum() / positive.sum())
    return found


def _held_directions(values: KeyValues) -> NDArray[np.float64]:
    """Orthonormal directions in which weights may not move: those of the values, and the sum."""
    constant = np.ones((len(values), 1))
    scale = np.abs(values).max(initial=0.0) or 1.0
    left, singular, _ = np.linalg.svd(np.hstack([values / scale, constant]), full_matrices=False)
    smallest = max(values.shape) * np.finfo(np.float64).eps * singular[0]
    directions: NDArray[np.float64] = left[:, singular > smallest]
    return directions


def _outside(held: NDArray[np.float64], step: KeyVector) -> KeyVector:
    """A step without its components in directions that are held."""
    free: KeyVector = step - held @ (held.T @ step)
    return free


def _apart(first: KeyVector, second: KeyVector) -> float:
    return float(np.abs(first - second).sum() / 2)
