"""Hidden states as sums with one term for each token: how biases are shared, terms weighted.

Terms of tokens are `[token, …, feature]`; at the end of a block `[token, batch, query, feature]`.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from attlas.shapes import HeadMean


def equal_shares(terms: Tensor, _: Tensor) -> Tensor:
    """Equal shares for all tokens whose term is not zero, `[token, …, 1]`."""
    present = terms.ne(0).any(dim=-1, keepdim=True).to(terms)
    return present / present.sum(dim=0).clamp_min(1)


def aligned_shares(terms: Tensor, bias: Tensor) -> Tensor:
    """Shares by the absolute inner product of a token's term with the bias (AbsDot).

    If all inner products are zero, terms that are not zero have equal shares.
    """
    along = torch.einsum("t...f,...f->t...", terms, bias).abs()[..., None]
    total = along.sum(dim=0)
    if bool((total > 0).all()):
        return along / total
    return torch.where(total > 0, along / total.where(total > 0, 1), equal_shares(terms, bias))


def slope(before: Tensor, after: Tensor) -> Tensor:
    """The slope of the line from the origin to each point (before, after) of an activation."""
    return torch.where(before == 0, 0, after / before.where(before != 0, 1))


def term_lengths(terms: Tensor) -> HeadMean:
    """The length (L2 norm) of each token's term in each position, `[batch, query, token]`."""
    return terms.square().sum(dim=-1).sqrt().permute(1, 2, 0)


def closeness_shares(whole: Tensor, terms: Tensor) -> HeadMean:
    """How close each token's term is to the whole state, `[batch, query, token]`.

    A term counts by how much closer to the state it is than zero, in the L1 distance; a term that
    is further away than zero counts nothing. Rows sum to one.
    """
    wide = whole.to(terms)
    distance = (wide - terms).abs().sum(dim=-1)
    closer = (wide.abs().sum(dim=-1) - distance).clamp_min(0).permute(1, 2, 0)
    total = closer.sum(dim=-1, keepdim=True)
    return closer / total.where(total > 0, 1)


def product_of_layers(layers: Sequence[HeadMean]) -> HeadMean:
    """The product of the layers' maps, lowest first: from each highest position to each token."""
    mixing = layers[0]
    for layer in layers[1:]:
        mixing = layer @ mixing
    return mixing


def scaled_product_of_layers(layers: Sequence[HeadMean]) -> HeadMean:
    """Like `product_of_layers`, but dividing by the largest entry each time, against overflow."""
    mixing = torch.eye(layers[0].shape[-1]).to(layers[0])[None]
    for layer in layers:
        mixing = layer @ mixing
        largest = mixing.amax(dim=(-2, -1), keepdim=True)
        mixing = mixing / largest.where(largest > 0, 1)
    return mixing
