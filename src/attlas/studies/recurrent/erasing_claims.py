"""The claims, tables and plots of `serrano_smith`; the rules were fixed before the figures."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from attlas.results import Claim, ComparedTable
from attlas.results.support import plots
from attlas.results.support.report_sections import Figure
from attlas.studies.recurrent.erasing_figures import (
    DIVERGENCE_GAP,
    FLIPPABLE,
    LEAST_FIRST,
    ORDERS,
    WEIGHT_GAP,
    column,
    flip_shares,
    mean_removed,
    median_removed,
    removed_shares,
)
from attlas.studies.support.findings import (
    at_least,
    at_most,
    compared,
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
CELLS = ("both", "largest only", "random only", "neither")
SHOWN = 600  # points of a scatter


def claims_of(parts: Parts) -> Iterator[Claim]:
    """Claims about recurrent models, the mean over tasks and forms for each seed."""
    recurrent = _of_encoder(parts, "bigru")
    plain = _of_encoder(parts, "none")
    if not recurrent:
        yield untested(
            "The largest weight is no sure sign of importance.",
            "Section 4",
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
        _over(recurrent, lambda part: _flips(part, "both") + _flips(part, "largest only")),
        found="Share of texts whose decision flips.",
        published=(MEAN_FLIPS[0] + MEAN_FLIPS[1]) / PERCENT,
    )
    yield decided(
        "Where only one of the two flips it, it is more often the largest weight.",
        "Table 2",
        at_least(0.0),
        _over(recurrent, lambda part: _flips(part, "largest only") - _flips(part, "random only")),
        found="Difference of the two shares.",
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
        ("By gradient × attention too.", ORDERS[0], ORDERS[2]),
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


def _flips(part: Mapping[str, Any], cell: str) -> float:
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


def tables_of(parts: Parts) -> Iterator[ComparedTable]:
    """Flips, shares of weights by order, and how good the models are."""
    rows: dict[str, Figure] = {}
    known: dict[str, float | None] = {}
    for key, models in parts.items():
        for at, cell in enumerate(CELLS):
            row = f"{', '.join(key)}: {cell}"
            rows[row] = _each(models, lambda part, cell=cell: PERCENT * _flips(part, cell))  # type: ignore[misc]
            known[row] = MEAN_FLIPS[at] if key[1:] == ("hierarchical", "bigru") else None
    yield compared(
        "Table 2: does erasing the largest weight, or a random one, flip the decision?",
        "Percent of the texts with two weights or more. Published: HANrnn, the mean of four data "
        "sets of 5 to 10 classes, which are not these.",
        rows,
        known,
    )
    yield compared(
        "Figure 5: share of the weights erased before the decision flips",
        "The median over texts that some order flips; an order that does not flip such a text "
        "counts as 1.",
        {
            f"{', '.join(key)}: {order}": _each(
                models,
                lambda part, order=order: median_removed(part, order),  # type: ignore[misc]
            )
            for key, models in parts.items()
            for order in (*ORDERS, LEAST_FIRST)
        },
        {},
    )
    yield compared(
        "Models, and the share of their texts that some order flips",
        "On test texts.",
        {
            f"{', '.join(key)}: {name}": _each(models, value)
            for key, models in parts.items()
            for name, value in (
                ("accuracy", lambda part: float(part["accuracy"])),
                ("some order flips", lambda part: float(column(part, FLIPPABLE).mean())),
            )
        },
        {},
    )


def _each(models: Sequence[Mapping[str, Any]], value: Callable[[Any], float]) -> Figure:
    known = [found for found in map(value, models) if not np.isnan(found)]
    return over_seeds(known) if known else Figure(None)


def plots_of(parts: Parts) -> Iterator[Mapping[str, Any]]:
    """ΔJS against the difference of weights, and the shares by order."""
    first = {key: models[0] for key, models in parts.items()}
    yield plots.scatter(
        "The largest weight against a random one",
        {
            ", ".join(key): (column(part, WEIGHT_GAP)[:SHOWN], column(part, DIVERGENCE_GAP)[:SHOWN])
            for key, part in first.items()
        },
        x_label="difference of the two weights",
        y_label="ΔJS: difference of the effects of erasing them",
        reading="A point is a text of the first seed. Near zero, even a much larger weight matters "
        "no more; below zero, the random one mattered more.",
    )
    for key, part in first.items():
        shares = {order: removed_shares(part, order) for order in ORDERS}
        if len(shares[ORDERS[0]]):
            yield plots.violins(
                f"Weights erased before the decision flips: {', '.join(key)}",
                shares,
                x_label="order",
                y_label="share of the weights",
                reading="A violin is the texts that some order flips. The lower, the better the "
                "order finds what the decision depends on.",
            )
