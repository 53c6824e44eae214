"""Recover tokens from hidden states: maps to the vectors of tokens, and their nearest neighbours.

A map is trained on some tokens, stopped by others, and tested on yet others. The metric, `L2` or
`cosine`, is the same in training and in the search for the nearest vector.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor
from torch.nn.functional import cosine_similarity, mse_loss, normalize

from attlas.shapes import Hidden, StateVectors, Vectors

METRICS = ("cosine", "L2")
MAPS = ("identity", "linear", "MLP")
RIDGES = (1e-4, 1e-3, 1e-2, 1e-1, 1.0, 10.0)  # penalties, as shares of the states' mean square
HIDDEN = 2  # units of the MLP for each feature
STEPS, BATCH, EVERY, RATE = 100, 256, 10, 1e-3

StateMap = Callable[[Tensor], Tensor]


@dataclass(frozen=True, eq=False)
class StatePairs:
    """Hidden states and the vectors to recover from them, `[token, feature]` each."""

    states: StateVectors
    vectors: StateVectors


def learn_maps(taught: StatePairs, held: StatePairs, seed: int) -> dict[tuple[str, str], StateMap]:
    """Train a map from states to vectors, of each kind and for each metric.

    States and vectors have the same features. Linear maps come from ridge regression with the
    penalty that does best on the held-out pairs; for cosine they are then trained further. The MLP
    starts as the linear map and adds a hidden layer to it.
    """
    scaled = _Scaling(taught)
    own, kept = scaled(taught), scaled(held)
    ridge = _ridge(own, kept)
    found: dict[tuple[str, str], StateMap] = {}
    for metric in METRICS:
        linear = ridge if metric == "L2" else _train(ridge, own, kept, metric, seed)
        deep = _train(_deepened(linear, seed), own, kept, metric, seed)
        found["identity", metric] = _unchanged
        found["linear", metric] = scaled.before(linear)
        found["MLP", metric] = scaled.before(deep)
    return found


def is_recovered(guesses: Vectors, vectors: Vectors, metric: str) -> Hidden:
    """Whether the vector of its own token is the nearest to each guess, `[sample, token]`.

    Another token with the same vector counts too.
    """
    if metric == "cosine":
        nearness = normalize(guesses, dim=-1) @ normalize(vectors, dim=-1).transpose(-1, -2)
    else:
        nearness = -torch.cdist(guesses, vectors)
    nearest = nearness.argmax(dim=-1)
    chosen = vectors.gather(1, nearest[..., None].expand(-1, -1, vectors.shape[-1]))
    return (chosen == vectors).all(dim=-1)


def _unchanged(states: Tensor) -> Tensor:
    return states


class _Scaling:
    """Centre the states and scale them to size one; scale the vectors to size one."""

    def __init__(self, taught: StatePairs) -> None:
        self.mean = taught.states.mean(dim=0)
        self.size = _root_mean_square(taught.states - self.mean)
        self.vector_size = _root_mean_square(taught.vectors)

    def __call__(self, lesson: StatePairs) -> StatePairs:
        return StatePairs(self.states(lesson.states), lesson.vectors / self.vector_size)

    def states(self, states: Tensor) -> Tensor:
        return (states - self.mean) / self.size

    def before(self, parameters: Sequence[Tensor]) -> StateMap:
        """The map with these parameters, for states and vectors that are not scaled."""
        return lambda states: _apply(parameters, self.states(states)) * self.vector_size


def _root_mean_square(values: Tensor) -> Tensor:
    return values.square().mean().sqrt().clamp_min(1e-12)


def _apply(parameters: Sequence[Tensor], states: Tensor) -> Tensor:
    """Apply a linear map of two parameters; three more are a hidden layer beside it."""
    matrix, bias, *rest = parameters
    found: Tensor = states @ matrix + bias
    if rest:
        into, shift, out = rest
        found = found + torch.relu(states @ into + shift) @ out
    return found


def _ridge(taught: StatePairs, held: StatePairs) -> list[Tensor]:
    """The matrix and bias of ridge regression, with the penalty that does best on held-out pairs.

    The penalty is on the distance of the matrix from the best multiple of the identity: with few
    tokens to train on, states then stay where they are and do not all become the mean vector.
    """
    states, mean = taught.states.double(), taught.vectors.double().mean(dim=0)
    aims = taught.vectors.double() - mean
    unchanged = (states * aims).sum() / states.square().sum()
    squares, turned = torch.linalg.eigh(states.T @ states)
    projected = turned.T @ (states.T @ (aims - unchanged * states))
    size, identity = squares.mean(), unchanged * torch.eye(len(squares)).to(states)
    choices = [
        [
            (identity + turned @ (projected / (squares + ridge * size)[:, None])).float(),
            mean.float(),
        ]
        for ridge in RIDGES
    ]
    return min(choices, key=lambda each: _loss(each, held, "L2").item())


def _deepened(linear: Sequence[Tensor], seed: int) -> list[Tensor]:
    """The same map with a hidden layer that does not change it yet."""
    width, vectors = linear[0].shape
    generator = torch.Generator().manual_seed(seed)
    into = torch.randn(width, HIDDEN * width, generator=generator) * (2 / width) ** 0.5
    shift, out = torch.zeros(HIDDEN * width), torch.zeros(HIDDEN * width, vectors)
    return [*linear, *(each.to(linear[0]) for each in (into, shift, out))]


def _train(
    start: Sequence[Tensor], taught: StatePairs, held: StatePairs, metric: str, seed: int
) -> list[Tensor]:
    """Train from a start; return the parameters that did best on the held-out pairs."""
    parameters = [each.clone().requires_grad_() for each in start]
    optimiser = torch.optim.Adam(parameters, lr=RATE)
    generator = torch.Generator().manual_seed(seed)
    best, least, count = list(start), _loss(start, held, metric).item(), len(taught.states)
    with torch.enable_grad():
        for step in range(1, STEPS + 1):
            drawn = torch.randint(count, (min(BATCH, count),), generator=generator)
            batch = StatePairs(taught.states[drawn], taught.vectors[drawn])
            optimiser.zero_grad()
            _loss(parameters, batch, metric).backward()
            optimiser.step()
            if step % EVERY == 0:
                loss = _loss(parameters, held, metric).item()
                if loss < least:
                    best, least = [each.detach().clone() for each in parameters], loss
    return best


def _loss(parameters: Sequence[Tensor], lesson: StatePairs, metric: str) -> Tensor:
    guesses = _apply(parameters, lesson.states)
    if metric == "L2":
        return mse_loss(guesses, lesson.vectors)
    return 1 - cosine_similarity(guesses, lesson.vectors, dim=-1).mean()
