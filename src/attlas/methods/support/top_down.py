"""Rows from the top down: what a row over the positions becomes as it passes each layer below.

A product of maps is never made: only one row for each target is followed, from the last layer to
the first.
"""

from collections.abc import Callable, Sequence

import torch
from torch import Tensor

from attlas.methods.support.token_rows import fuse_heads
from attlas.models.rows.handed import HandedCall, RowSlice
from attlas.shapes import HeadMean, QueryWeights

TINY = 1e-30  # keeps a row without any weight at zero
Fuse = Callable[[RowSlice], HeadMean]  # combines the heads of a slice


def mean_row(calls: Sequence[HandedCall], row: QueryWeights, fuse: Fuse) -> Tensor:
    """A row over the queries times the maps, averaged over the layers, `[target, key]`."""
    return torch.stack([through_map(call, row, fuse) for call in calls]).mean(dim=0)


def relevant_row(calls: Sequence[HandedCall], row: QueryWeights, fuse: Fuse) -> Tensor:
    """What a row gains if each layer adds to it the row times its map, `[target, token]`."""
    gained = torch.zeros_like(row)
    for call in reversed(calls):
        gained = gained + through_map(call, row + gained, fuse)
    return gained


def rolled_row(
    calls: Sequence[HandedCall], row: QueryWeights, residual: float, fuse: Fuse | None
) -> Tensor:
    """A row over the positions of the last layer as a row over the tokens, `[target, token]`.

    `residual` is the share of each layer that bypasses attention. Heads are combined by `fuse`, or
    by their mean if it is None.
    """
    for call in reversed(calls):
        row = roll_through(call, row, residual, fuse)
    return row


def roll_through(call: HandedCall, row: QueryWeights, residual: float, fuse: Fuse | None) -> Tensor:
    """A row after one layer and the share that bypasses it, whose rows together sum to one."""
    pulled = call.pull(row) if fuse is None else None
    if pulled is not None:  # fused attention has no sinks: its rows sum to one
        return torch.add(residual * row, pulled, alpha=1 - residual)
    rolled = torch.zeros_like(row)
    for part in call.slices(support(row)):
        layer = (1 - residual) * (mean_of_heads if fuse is None else fuse)(part)
        total = residual + layer.sum(dim=-1)
        shares = row[:, part.rows] / total.clamp_min(TINY)
        rolled[:, part.keys] += times(shares, layer)
        rolled[:, part.rows] += residual * shares
    return rolled


def through_map(call: HandedCall, row: QueryWeights, fuse: Fuse) -> Tensor:
    """A row over the queries times the map of one layer, its heads combined, `[target, key]`."""
    passed = torch.zeros_like(row)
    for part in call.slices(support(row)):
        passed[:, part.keys] += times(row[:, part.rows], fuse(part))
    return passed


def own_weights(call: HandedCall) -> Tensor:
    """The weight of each position on itself, `[batch, head, query]`, from one slice at a time."""
    found = []
    for part in call.slices(torch.arange(call.queries, device=call.streams[0].device)):
        places = torch.arange(len(part.rows), device=part.rows.device)
        found.append(part.weights[:, :, places, part.rows - part.keys.start])
    return torch.cat(found, dim=-1)


def mean_of_heads(part: RowSlice) -> HeadMean:
    """The mean of all heads of a slice."""
    return fuse_heads(part.weights)


def support(row: QueryWeights) -> Tensor:
    """The positions where some row is not zero: those of the map that are asked for."""
    return row.any(dim=0).nonzero()[:, 0]


def times(row: Tensor, layer: HeadMean) -> Tensor:
    """Each row times its map; the map of one input serves every row."""
    if len(layer) == 1:
        return row @ layer[0]
    return torch.bmm(row[:, None], layer)[:, 0]
