"""What Serrano and Smith measure: erasing the last attention; and what they claim of it."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Generator, Tensor

from attlas.mathematics.divergences import jensen_shannon
from attlas.mathematics.other_weights import erased, first_flips, ranks
from attlas.results import Claim
from attlas.results.support.report_sections import Figure
from attlas.studies.recurrent.readings import FixedReading, readings
from attlas.studies.recurrent.training import TrainedModel
from attlas.studies.support.findings import (
    at_least,
    at_most,
    decided,
    over_seeds,
    untested,
)

Key = tuple[str, str, str]  # task, form, encoder
Parts = Mapping[Key, Sequence[Mapping[str, Any]]]  # for each seed, what was found
PERCENT = 100.0
# percent of texts, HANrnn on data of 5 to 10 classes: both, largest only, random only, neither
FLIPS = {
    "Yahoo": (0.5, 8.7, 1.3, 89.6),
    "IMDB": (2.2, 12.2, 1.4, 84.2),
    "Amazon": (2.7, 7.6, 2.7, 87.1),
    "Yelp": (1.5, 8.9, 1.9, 87.7),
}
MEAN_FLIPS = tuple(float(np.mean(each)) for each in zip(*FLIPS.values(), strict=True))

ORDERS = ("attention", "gradient", "gradient × attention", "random order")
LEAST_FIRST = "least attention first"
DIVERGENCE_GAP, WEIGHT_GAP = "difference of JS", "difference of weight"
LARGEST_FLIPS, RANDOM_FLIPS = "largest flips", "random flips"
OF_ALL = (
    "a mean over the tasks and forms of the recurrent models. The published one is of hierarchical "
    "models and other data."
)
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


def claims_of(parts: Parts) -> Iterator[Claim]:
    """Claims about recurrent models, the mean over tasks and forms for each seed."""
    recurrent = _of_encoder(parts, "bigru")
    plain = _of_encoder(parts, "none")
    if not recurrent:
        yield untested(
            "The largest weight is no sure sign of importance.",
            "the paper as a whole",
            "It takes a recurrent encoder (bigru).",
        )
        return
    yield decided(
        "Erasing the largest weight moves the output at least as far as erasing a random one.",
        "Figure 3",
        at_least(0.7),
        _over(recurrent, lambda part: float((column(part, DIVERGENCE_GAP) >= 0).mean())),
        found="Share of texts in which ΔJS is not negative.",
    )
    yield decided(
        "Erasing the largest weight mostly does not flip the decision.",
        "Table 2",
        at_most(0.5),
        _over(recurrent, lambda part: _cell(part, "both") + _cell(part, "largest only")),
        found=f"Share of texts whose decision flips; {OF_ALL}",
        published=(MEAN_FLIPS[0] + MEAN_FLIPS[1]) / PERCENT,
    )
    yield decided(
        "Where only one of the two flips it, it is more often the largest weight.",
        "Table 2",
        at_least(0.0),
        _over(recurrent, lambda part: _cell(part, "largest only") - _cell(part, "random only")),
        found=f"Difference of the two shares; {OF_ALL}",
        published=(MEAN_FLIPS[1] - MEAN_FLIPS[2]) / PERCENT,
    )
    yield decided(
        "By attention, most of the weights go before the decision flips.",
        "Figure 5",
        at_least(0.5),
        _over(recurrent, lambda part: median_removed(part, ORDERS[0])),
        found="Median share of the weights, in texts that some order flips.",
    )
    yield from _orders(recurrent)
    if plain:
        yield decided(
            "With an encoder, more weights must go than without one.",
            "Figure 5",
            at_least(0.0),
            over_seeds(
                [
                    _mean(one, _by_attention) - _mean(other, _by_attention)
                    for one, other in zip(recurrent, plain, strict=False)
                ]
            ),
            found="Difference of the mean shares by attention, recurrent less plain.",
        )


def _orders(models: Sequence[Sequence[Mapping[str, Any]]]) -> Iterator[Claim]:
    for said, slow, fast in (
        ("By the gradient, fewer weights must go than by attention.", ORDERS[0], ORDERS[1]),
        ("By gradient × attention, fewer weights must go than by attention.", ORDERS[0], ORDERS[2]),
        ("By attention, fewer must go than in a random order.", ORDERS[3], ORDERS[0]),
    ):
        yield decided(
            said,
            "Figure 5",
            at_least(0.0),
            _over(models, _less(slow, fast)),
            found=f"Mean share by {slow} less that by {fast}.",
        )


def _less(slow: str, fast: str) -> Callable[[Any], float]:
    return lambda part: mean_removed(part, slow) - mean_removed(part, fast)


def _by_attention(part: Mapping[str, Any]) -> float:
    return mean_removed(part, ORDERS[0])


def _cell(part: Mapping[str, Any], cell: str) -> float:
    return flip_shares(part)[cell]


def _of_encoder(parts: Parts, encoder: str) -> list[list[Mapping[str, Any]]]:
    """For each seed, the models of all tasks and forms with one encoder."""
    chosen = [each for (_, _, one), each in parts.items() if one == encoder]
    return [list(each) for each in zip(*chosen, strict=True)] if chosen else []


def _mean(models: Sequence[Mapping[str, Any]], value: Callable[[Any], float]) -> float:
    known = [found for found in map(value, models) if not np.isnan(found)]
    return float(np.mean(known)) if known else float("nan")


def _over(models: Sequence[Sequence[Mapping[str, Any]]], value: Callable[[Any], float]) -> Figure:
    """The mean over the models of each seed, with its interval over seeds."""
    known = [found for each in models if not np.isnan(found := _mean(each, value))]
    return over_seeds(known) if known else Figure(None)
