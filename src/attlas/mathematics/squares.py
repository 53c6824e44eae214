"""Squares of patches: a map over the tokens of a later stage as a map over the patches.

A model with stages joins patches into fewer and fewer tokens, each of which stands for a square of
patches. Spread over the patches, every patch attends as its square does, and what a square receives
is shared equally by its patches. So rows still sum to one, and to follow spread maps from layer to
layer is to follow the maps of the stages with a token's patches weighing the same between them.
"""

import torch
from torch import Tensor

from attlas.shapes import (
    Attention,
    Holders,
    QueryWeights,
    SpreadAttention,
    SpreadVisible,
    TokenScores,
    Visible,
)

NOBODY = -1  # holds a token that is not there at a site


def squares_of(grid: tuple[int, int], count: int) -> Holders | None:
    """The square of each patch, row by row, where `count` squares cover the grid; else None."""
    rows, columns = grid
    for side in range(1, max(grid) + 1):
        across = -(-columns // side)
        if -(-rows // side) * across == count:
            down, right = torch.arange(rows) // side, torch.arange(columns) // side
            return (down[:, None] * across + right).flatten()
    return None


def spread_attention(weights: Attention, queries: Holders, keys: Holders) -> SpreadAttention:
    """Attention over all tokens; a token that is not there attends to itself.

    `queries` and `keys` have, for each token, the row and the column that holds it.
    """
    shared = 1.0 / _sizes(keys, weights.shape[-1]).to(weights)
    spread = _spread(weights * shared, queries, keys)
    absent = (queries == NOBODY).nonzero().flatten()
    spread[:, :, absent, absent] = 1.0
    return spread


def spread_gradient(gradient: Attention, queries: Holders, keys: Holders) -> SpreadAttention:
    """The gradient on spread attention: a row of the model's map is the mean of its patches'."""
    shared = 1.0 / _sizes(queries, gradient.shape[-2]).to(gradient)
    return _spread(gradient * shared[:, None], queries, keys)


def spread_effects(effects: Attention, queries: Holders, keys: Holders) -> SpreadAttention:
    """What each weight adds, such as attention × gradient: the sum stays the same."""
    shared = 1.0 / _sizes(keys, effects.shape[-1]).to(effects)
    return spread_gradient(effects * shared, queries, keys)


def spread_states(states: Tensor, queries: Holders) -> Tensor:
    """Each token's state or value, `[…, token, feature]`: that of its square, or zeros."""
    return states[..., queries.clamp_min(0), :].masked_fill((queries == NOBODY)[:, None], 0)


def spread_marks(visible: Visible, queries: Holders, keys: Holders) -> SpreadVisible:
    """Which tokens each token may see."""
    return _spread(visible, queries, keys)


def spread_rows(weights: QueryWeights, queries: Holders) -> TokenScores:
    """The weight of each row of a map, shared by the tokens that it holds."""
    shared = weights / _sizes(queries, weights.shape[-1]).to(weights)
    return shared[:, queries.clamp_min(0)].masked_fill(queries == NOBODY, 0)


def _spread(each: Tensor, queries: Holders, keys: Holders) -> Tensor:
    rows = each[..., queries.clamp_min(0), :].masked_fill((queries == NOBODY)[:, None], 0)
    return rows[..., keys.clamp_min(0)].masked_fill(keys == NOBODY, 0)


def _sizes(holders: Holders, count: int) -> Tensor:
    """How many tokens each place holds."""
    return torch.bincount(holders[holders != NOBODY], minlength=count).clamp_min(1)
