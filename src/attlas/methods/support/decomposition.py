"""Hidden states as sums of parts, one for each token: how biases are shared, how parts are weighed.

Parts of tokens are `[token, …, feature]`; at the end of a block `[token, batch, query, feature]`.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from attlas.shapes import HeadMean


def present(parts: Tensor, _: Tensor) -> Tensor:
    """Equal shares for the tokens that have a part at all, `[token, …, 1]`."""
    there = parts.ne(0).any(dim=-1, keepdim=True).to(parts)
    return there / there.sum(dim=0).clamp_min(1)


def aligned(parts: Tensor, bias: Tensor) -> Tensor:
    """Shares by how far the part of a token points along the bias, or against it: AbsDot.

    Where no part does, those that are there have equal shares.
    """
    along = torch.einsum("t...f,...f->t...", parts, bias).abs()[..., None]
    total = along.sum(dim=0)
    if bool((total > 0).all()):
        return along / total
    return torch.where(total > 0, along / total.where(total > 0, 1), present(parts, bias))


def slope(before: Tensor, after: Tensor) -> Tensor:
    """The slope of the line from the origin through what an activation made of each number."""
    return torch.where(before == 0, 0, after / before.where(before != 0, 1))


def part_lengths(parts: Tensor) -> HeadMean:
    """The length (L2 norm) of each token's part in each position, `[batch, query, token]`."""
    return parts.square().sum(dim=-1).sqrt().permute(1, 2, 0)


def closeness(whole: Tensor, parts: Tensor) -> HeadMean:
    """How near the part of each token is to the whole, `[batch, query, token]`.

    Rows sum to one. What counts is by how much the part alone is nearer to the whole than nothing
    is, in the L1 distance; a part that is further away counts nothing.
    """
    wide = whole.to(parts)
    distance = (wide - parts).abs().sum(dim=-1)
    nearer = (wide.abs().sum(dim=-1) - distance).clamp_min(0).permute(1, 2, 0)
    total = nearer.sum(dim=-1, keepdim=True)
    return nearer / total.where(total > 0, 1)


def multiplied_up(layers: Sequence[HeadMean]) -> HeadMean:
    """The product of the maps of layers, lowest first: from the highest position to each token."""
    mixing = layers[0]
    for layer in layers[1:]:
        mixing = layer @ mixing
    return mixing


def multiplied_to_scale(layers: Sequence[HeadMean]) -> HeadMean:
    """As `multiplied_up`, each product divided by its largest entry: many layers would overflow."""
    mixing = torch.eye(layers[0].shape[-1]).to(layers[0])[None]
    for layer in layers:
        mixing = layer @ mixing
        largest = mixing.amax(dim=(-2, -1), keepdim=True)
        mixing = mixing / largest.where(largest > 0, 1)
    return mixing
