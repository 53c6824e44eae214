"""How relevance spreads by attention: the update rules of Chefer, Gur and Wolf, ICCV 2021.

Relevance is stored for pairs of streams: for (reader, other), how relevant each token of the other
stream is to each position of the reader. A missing pair is all zeros.
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from attlas.shapes import Attention, HeadMean

Relevance = Mapping[tuple[str, str], Tensor]  # each `[batch, position, token]`
Read = tuple[str, str, Tensor]  # the reader, the stream it reads, and the attention


def weigh_heads(attention: Attention, gradient: Attention) -> HeadMean:
    """The mean over heads of the positive values of attention × gradient (rule 5)."""
    kind = torch.promote_types(attention.dtype, gradient.dtype)
    if kind == torch.float16:  # products may be too small for it
        kind = torch.float32
    product = torch.mul(gradient.to(kind), attention).clamp_min_(0)
    return product.mean(dim=1, dtype=torch.promote_types(kind, torch.float32))


def begin(lengths: Mapping[str, int], like: Tensor) -> Relevance:
    """Relevance before the first layer: each token only to its own position."""
    return {(name, name): torch.eye(size).to(like)[None] for name, size in lengths.items()}


def read_own(relevance: Relevance, reader: str, layer: HeadMean) -> Relevance:
    """Relevance after self-attention: what is read is added (rules 6 and 7)."""
    gained = {pair: layer @ each for pair, each in relevance.items() if pair[0] == reader}
    return {
        pair: each + gained[pair] if pair in gained else each for pair, each in relevance.items()
    }


def read_others(relevance: Relevance, reads: Sequence[Read]) -> Relevance:
    """Relevance after attention to another stream (rules 10 and 11).

    Several reads at once all see the relevance from before. If the other stream never reads the
    reader, as in encoder–decoders, the reader's relevance to itself stays the same.
    """
    updated = dict(relevance)
    for reader, other, layer in reads:
        mixed, source = (normalise(relevance[name, name]) for name in (reader, other))
        _add(updated, (reader, other), mixed.mT @ layer @ source)
        if (other, reader) in relevance:
            _add(updated, (reader, reader), layer @ relevance[other, reader])
    return updated


def _add(table: dict[tuple[str, str], Tensor], pair: tuple[str, str], gained: Tensor) -> None:
    table[pair] = table[pair] + gained if pair in table else gained


def normalise(own: HeadMean) -> HeadMean:
    """What a stream gained from itself, with rows scaled to sum to one, plus 1 (rules 8 and 9).

    A row that has gained nothing stays as it is.
    """
    start = torch.eye(own.shape[-1]).to(own)
    gained = own - start
    total = gained.sum(dim=-1, keepdim=True)
    return gained / total.where(total > 0, 1.0) + start
