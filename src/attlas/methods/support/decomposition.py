"""Hidden states as sums with one term for each token: how biases are shared, terms weighted.

Terms of tokens are `[token, …, feature]`; at the end of a block `[token, batch, query, feature]`.
"""

from collections.abc import Mapping, Sequence
from typing import Any

import torch
from torch import Tensor

from attlas.methods.support.token_rows import read_row
from attlas.models.asking.question import Question
from attlas.models.facts.anatomy import width_of
from attlas.shapes import HeadMean, QuerySizes, QueryWeights, TokenScores

OF_PAIRS = 20  # passes that a vector for each pair of tokens weighs, for each token by the width


def weigh_pairs(question: Question, options: Mapping[str, Any]) -> float:
    """Two passes and a vector for each pair: beside a wider model's products these weigh less."""
    return 2 + OF_PAIRS * len(question.inputs.tokens[0]) / width_of(question.subject.model)


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


def term_lengths(terms: Tensor) -> Tensor:
    """The length (L2 norm) of each term in each position, `[term, batch, query]`."""
    lengths: Tensor = torch.linalg.vector_norm(terms, dim=-1)
    return lengths


def closeness(whole: Tensor, terms: Tensor) -> Tensor:
    """How much closer each term is to the whole state than zero, `[term, batch, query]`.

    The distance is L1; a term that is further away than zero counts nothing.
    """
    distance = (whole - terms).abs_().sum(dim=-1)
    return (whole.abs().sum(dim=-1) - distance).clamp_min(0)


def closeness_shares(closer: HeadMean) -> HeadMean:
    """How close each token's term is to the state, `[batch, query, token]`; rows sum to one."""
    total = closer.sum(dim=-1, keepdim=True)
    return closer / total.where(total > 0, 1)


def product_of_layers(layers: Sequence[HeadMean]) -> HeadMean:
    """The product of the layers' maps, lowest first: from each highest position to each token."""
    mixing = layers[0]
    for layer in layers[1:]:
        mixing = layer @ mixing
    return mixing


def scaled_product_of_layers(layers: Sequence[HeadMean]) -> tuple[HeadMean, QuerySizes]:
    """The product of the layers' maps with each row divided by its largest entry.

    The second result is the logarithm of what each row was divided by. In deep decoders, rows grow
    so differently that no single scale holds them all.
    """
    # A sink may take all but 1e-40 of a row, which float32 holds no more.
    kind = layers[0].dtype if layers[0].device.type == "mps" else torch.float64
    mixing = torch.eye(layers[0].shape[-1]).to(layers[0].device, kind)[None]
    scale = mixing.new_zeros(1, mixing.shape[1])
    for layer in layers:
        sizes = layer.to(kind).log() + scale[:, None]
        top = sizes.amax(dim=-1, keepdim=True)
        top = top.where(top.isfinite(), 0)  # a row of zeros
        mixing = (sizes - top).exp() @ mixing
        largest = mixing.amax(dim=-1, keepdim=True)
        mixing = mixing / largest.where(largest > 0, 1)
        scale = (top + largest.log())[..., 0]
    return mixing, scale


def read_scaled_rows(mixing: HeadMean, scale: QuerySizes, readout: QueryWeights) -> TokenScores:
    """The row that the prediction is read from, of such a product; its largest entry is one.

    Several rows count by their shares, each in its own size.
    """
    shares = scale + readout.to(scale).log()
    top = shares.amax(dim=-1, keepdim=True)
    found = read_row(mixing, (shares - top.where(top.isfinite(), 0)).exp())
    largest = found.amax(dim=-1, keepdim=True)
    return found / largest.where(largest > 0, 1)
