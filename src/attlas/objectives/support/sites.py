"""The part of a pass that an objective is about: layers, heads, and the rows that are read."""

from collections.abc import Sequence
from typing import Any

import torch

from attlas.errors import UsageError
from attlas.models.tap.call import Call
from attlas.models.teaching.reading_row import ALL, reading_weights
from attlas.objectives.support.objective import check_word_of
from attlas.objectives.support.step import TrainingStep, in_single
from attlas.shapes import Attention, QueryWeights, ReadRows

READOUT = "readout"
Chosen = int | str | Sequence[int]  # a number from the front or, below zero, the back; or "all"


def chosen_calls(step: TrainingStep, name: str, layer: Chosen) -> list[Call]:
    """The attention of some layers of the kind that the answer is read through."""
    own = [call for call in step.calls if call.site.kind == step.calls[-1].site.kind]
    return [own[place] for place in numbers(f"layer of {name}", layer, len(own))]


def read_rows(
    step: TrainingStep, name: str, call: Call, rows: str = READOUT, head: Chosen = ALL
) -> ReadRows:
    """The attention that the answer is read by, `[batch, head, key]`: a mean over its rows."""
    check_word_of(name, "rows", rows, (READOUT, ALL))
    weights = in_single(call.weights)
    heads = numbers(f"head of {name}", head, weights.shape[1])
    return mean_row(weights[:, heads], row_weights(step, weights, rows))


def row_weights(step: TrainingStep, weights: Attention, rows: str) -> QueryWeights:
    """The share of each row, `[batch, query]`; an attention that pools has one row."""
    if weights.shape[2] == 1:
        return weights.new_ones(len(weights), 1)
    rule = step.reads if rows == READOUT else ALL
    return reading_weights(rule, step.seen).to(weights)


def mean_row(weights: Attention, rows: QueryWeights) -> ReadRows:
    """The rows of an attention as one, each by its share."""
    return torch.einsum("bhqk,bq->bhk", weights, rows)


def numbers(what: str, given: Any, count: int) -> list[int]:
    """Some of `count` things by their numbers, in order."""
    if given == ALL:
        return list(range(count))
    several = list(given) if isinstance(given, (tuple, list)) else [given]
    for each in several:
        if isinstance(each, bool) or not isinstance(each, int) or not -count <= each < count:
            raise UsageError(
                f"{what} is a whole number from {-count} to {count - 1}, several with / between, "
                f"or all, not {each!r}"
            )
    return sorted({each % count for each in several})
