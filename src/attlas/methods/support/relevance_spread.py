"""How relevance spreads by attention: the update rules of Chefer, Gur and Wolf, ICCV 2021.

Relevance is kept for pairs of streams: of (reader, read) it says how much each token of the stream
that is read matters to each position of the reader. A pair that is not there is all zeros.
"""

from collections.abc import Mapping, Sequence

import torch
from torch import Tensor

from attlas.shapes import Attention, HeadMean

Relevance = Mapping[tuple[str, str], Tensor]  # each `[batch, position, token]`
Read = tuple[str, str, Tensor]  # the reader, what it reads, and the layer that it reads by


def weigh_heads(attention: Attention, gradient: Attention) -> HeadMean:
    """The mean over heads of what in attention × gradient speaks for the target (rule 5)."""
    kind = torch.promote_types(torch.promote_types(attention.dtype, gradient.dtype), torch.float32)
    return (attention.to(kind) * gradient.to(kind)).clamp_min_(0).mean(dim=1)


def begin(lengths: Mapping[str, int], like: Tensor) -> Relevance:
    """Before the first layer, each token matters to its own position alone."""
    return {(name, name): torch.eye(size).to(like)[None] for name, size in lengths.items()}


def read_own(relevance: Relevance, reader: str, layer: HeadMean) -> Relevance:
    """Self-attention: what is read is added to what is there (rules 6 and 7)."""
    gained = {pair: layer @ each for pair, each in relevance.items() if pair[0] == reader}
    return {
        pair: each + gained[pair] if pair in gained else each for pair, each in relevance.items()
    }


def read_others(relevance: Relevance, reads: Sequence[Read]) -> Relevance:
    """Attention to another stream (rules 10 and 11); several at once read what was there before.

    A reader whose other stream never reads it gains nothing of its own: the rule of
    encoder–decoders.
    """
    found = dict(relevance)
    for reader, other, layer in reads:
        mixed, source = (normalise(relevance[name, name]) for name in (reader, other))
        _add(found, (reader, other), mixed.mT @ layer @ source)
        if (other, reader) in relevance:
            _add(found, (reader, reader), layer @ relevance[other, reader])
    return found


def _add(found: dict[tuple[str, str], Tensor], pair: tuple[str, str], gained: Tensor) -> None:
    found[pair] = found[pair] + gained if pair in found else gained


def normalise(own: HeadMean) -> HeadMean:
    """What a stream gained of itself, rows made to sum to one, and itself (rules 8 and 9).

    A row that has gained nothing stays as it began.
    """
    start = torch.eye(own.shape[-1]).to(own)
    gained = own - start
    total = gained.sum(dim=-1, keepdim=True)
    return gained / total.where(total > 0, 1.0) + start
