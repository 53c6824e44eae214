"""Rows from the top down: what a row over the positions becomes as it passes each layer below.

A product of maps is never made: only one row for each target is followed, from the last layer to
the first.
"""

from collections.abc import Callable, Sequence

import numpy as np
import torch
from torch import Tensor

from attlas.methods.support.token_rows import fuse_heads
from attlas.models.rows.handed import HandedCall, RowSlice
from attlas.shapes import HeadMean, QueryWeights

TINY = 1e-30  # keeps a row without any weight at zero
Fuse = Callable[[RowSlice], HeadMean]  # combines the heads of a slice


def mean_row(calls: Sequence[HandedCall], row: QueryWeights, fuse: Fuse) -> Tensor:
    """A row over the queries times the maps, averaged over the layers, `[target, key]`."""
    rows = support(row)
    return torch.stack([through_map(call, row, rows, fuse)[0] for call in calls]).mean(dim=0)


def relevant_row(calls: Sequence[HandedCall], row: QueryWeights, fuse: Fuse) -> Tensor:
    """What a row gains if each layer adds to it the row times its map, `[target, token]`."""
    gained, rows = torch.zeros_like(row), support(row)
    for call in reversed(calls):
        passed, seen = through_map(call, row + gained, rows, fuse)
        gained = gained + passed
        # Looking at each layer for what is zero would take longer: a device had to be waited for.
        rows = range(min(rows[0], seen.start), max(rows[-1] + 1, seen.stop))
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
        return torch.lerp(pulled, row, residual)
    rolled = torch.zeros_like(row)
    for part in call.slices(support(row)):
        layer = (1 - residual) * (mean_of_heads if fuse is None else fuse)(part)
        total = residual + layer.sum(dim=-1)
        shares = row[:, part.rows] / total.clamp_min(TINY)
        rolled[:, part.keys] += times(shares, layer)
        rolled[:, part.rows] += residual * shares
    return rolled


def through_map(
    call: HandedCall, row: QueryWeights, rows: Sequence[int], fuse: Fuse
) -> tuple[Tensor, range]:
    """A row over the queries times the map of one layer, its heads combined, `[target, key]`.

    Only these rows of the map are asked for. With it comes the span of the keys that they can see.
    """
    passed, seen = torch.zeros_like(row), []
    for part in call.slices(rows):
        passed[:, part.keys] += times(row[:, part.rows], fuse(part))
        seen.append(part.keys)
    return passed, range(min(each.start for each in seen), max(each.stop for each in seen))


def own_weights(call: HandedCall) -> Tensor:
    """The weight of each position on itself, `[batch, head, query]`, from one slice at a time."""
    found = []
    for part in call.slices(range(call.queries)):
        places = torch.arange(len(part.rows), device=part.rows.device)
        found.append(part.weights[:, :, places, part.rows - part.keys.start])
    return torch.cat(found, dim=-1)


def mean_of_heads(part: RowSlice) -> HeadMean:
    """The mean of all heads of a slice."""
    return fuse_heads(part.weights)


def support(row: QueryWeights) -> Sequence[int]:
    """The positions where some row is not zero: those of the map that are asked for."""
    found: list[int] = np.flatnonzero(row.any(dim=0).cpu()).tolist()
    is_span = found[-1] + 1 - found[0] == len(found)
    return range(found[0], found[-1] + 1) if is_span else found


def times(row: Tensor, layer: HeadMean) -> Tensor:
    """Each row times its map; the map of one input serves every row."""
    if len(layer) == 1:
        return row @ layer[0]
    return torch.bmm(row[:, None], layer)[:, 0]
