"""What Serrano and Smith measure on one trained model: its last attention, erased by weights."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor

from attlas.mathematics.divergences import jensen_shannon
from attlas.mathematics.other_weights import erased, first_flips, ranks
from attlas.studies.recurrent.readings import FixedReading, readings
from attlas.studies.recurrent.training import TrainedModel

ORDERS = ("attention", "gradient", "gradient × attention", "random order")
LEAST_FIRST = "least attention first"
DIVERGENCE_GAP, WEIGHT_GAP = "difference of JS", "difference of weight"
LARGEST_FLIPS, RANDOM_FLIPS = "largest flips", "random flips"
SIZE, FLIPPABLE = "weights", "some order flips"
DIGITS = 5  # that are kept of a text's figure


def erasing_figures(trained: TrainedModel, draws: int, seed: int) -> dict[str, Any]:
    """All figures of each test text with two weights or more, as JSON."""
    random = torch.Generator().manual_seed(seed)
    columns: dict[str, list[float]] = {}
    for reading in readings(trained.model, trained.test):
        found = erase_reading(reading, draws, random)
        counts = found[SIZE] >= 2
        for name, values in found.items():
            columns.setdefault(name, []).extend(
                round(float(each), DIGITS) for each in values[counts].tolist()
            )
    return {**trained.figures, "classes": trained.model.config.num_labels, "texts": columns}


@torch.no_grad()
def erase_reading(reading: FixedReading, draws: int, random: Generator) -> dict[str, Tensor]:
    """The figures of each text of a reading, `[text]`.

    The gradient is that of the predicted class's probability on the weights; its order is signed,
    the highest first. The share of a random order is the mean of `draws` of them.
    """
    weights, free = reading.weights, reading.free
    gradient = weight_gradient(reading)
    drawn = torch.rand((draws, *weights.shape), generator=random).to(weights)
    scores = torch.cat(
        [torch.stack([weights, gradient, gradient * weights, -weights]), drawn], dim=0
    )
    rank = ranks(scores, free, random)
    flips = first_flips(weights, free, rank, reading.answer)
    shares = flips.shares(free)
    found = _single(reading, rank[0], random)
    for number, order in enumerate((*ORDERS[:3], LEAST_FIRST)):
        found[order] = shares[number]
    found[ORDERS[3]] = shares[4:].mean(dim=0)
    return {**found, SIZE: free.sum(dim=-1), FLIPPABLE: flips.flips.any(dim=0).double()}


def weight_gradient(reading: FixedReading) -> Tensor:
    """The gradient of the predicted class's probability on the weights, `[text, token]`."""
    with torch.enable_grad():
        weights = reading.weights.detach().clone().requires_grad_()
        sure = reading.answer(weights[None])[0].gather(1, reading.predicted[:, None]).sum()
        (slope,) = torch.autograd.grad(sure, [weights])
    return slope


def _single(reading: FixedReading, rank: Tensor, random: Generator) -> dict[str, Tensor]:
    """Erase the largest weight, and one of the others drawn at random."""
    largest = rank == 0
    drawn = torch.rand(rank.shape, generator=random).to(reading.weights)
    other = drawn.masked_fill(~reading.free | largest, -1.0).argmax(dim=-1, keepdim=True)
    chosen = torch.zeros_like(largest).scatter(-1, other, True)
    gone = torch.stack([largest, chosen])
    answers = reading.answer(erased(reading.weights.expand(2, -1, -1), gone))
    far = jensen_shannon(answers, reading.clean.expand_as(answers))
    turned = (answers.argmax(dim=-1) != reading.predicted).double()
    weights = (reading.weights * gone).sum(dim=-1)
    return {
        DIVERGENCE_GAP: far[0] - far[1],
        WEIGHT_GAP: weights[0] - weights[1],
        LARGEST_FLIPS: turned[0],
        RANDOM_FLIPS: turned[1],
    }


def flip_shares(part: Mapping[str, Any]) -> dict[str, float]:
    """The four cells of the table of flips, as shares of the texts."""
    largest, other = (column(part, name) > 0 for name in (LARGEST_FLIPS, RANDOM_FLIPS))
    cells = {
        "both": largest & other,
        "largest only": largest & ~other,
        "random only": ~largest & other,
        "neither": ~largest & ~other,
    }
    return {name: float(each.mean()) if len(each) else float("nan") for name, each in cells.items()}


def removed_shares(part: Mapping[str, Any], order: str) -> NDArray[np.float64]:
    """The share of weights erased until the first flip, in the texts that some order flips.

    An order that does not flip such a text counts as all of its weights.
    """
    return column(part, order)[column(part, FLIPPABLE) > 0]


def median_removed(part: Mapping[str, Any], order: str) -> float:
    """The median of these shares; NaN if no text can be flipped."""
    shares = removed_shares(part, order)
    return float(np.median(shares)) if len(shares) else float("nan")


def mean_removed(part: Mapping[str, Any], order: str) -> float:
    """The mean of these shares; NaN if no text can be flipped."""
    shares = removed_shares(part, order)
    return float(shares.mean()) if len(shares) else float("nan")


def column(part: Mapping[str, Any], name: str) -> NDArray[np.float64]:
    """One figure of all texts."""
    values: Sequence[float | None] = part["texts"].get(name, [])
    return np.array([np.nan if each is None else each for each in values], dtype=np.float64)
