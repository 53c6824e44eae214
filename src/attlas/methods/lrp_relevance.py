"""LRP relevance: relevance at the attention, times its gradient, followed through all layers.

Chefer, Gur and Wolf, "Transformer Interpretability Beyond Attention Visualization", CVPR 2021.
"""

from collections.abc import Collection, Mapping, Sequence

import torch
from torch import Tensor

from attlas.methods.generic_relevance import Layout, layers_from
from attlas.methods.support.method import Scored, method
from attlas.methods.support.relevance_spread import Read, Relevance, begin, weigh_heads
from attlas.methods.support.token_rows import read_row, sites_in_turn
from attlas.models.asking.question import Question
from attlas.models.asking.reading import gradients_and_readout
from attlas.models.relevance.passes import attention_relevance, without_rule
from attlas.results import Site
from attlas.shapes import HeadMean, TokenScores

LOST = {torch.float64: 0.05, torch.float32: 0.05}  # share of relevance: far above rounding
LOST_COARSE = 0.2  # in half precision


@method(
    family="P",
    signed=False,
    of="logit",
    paper="arXiv:2012.09838",
    maps="all",
    reading="How much each token adds, by attention that supports the target, to the prediction.",
    needs=("attention", "gradients", "embeddings"),
    fills=True,
    passes=3,
    weighs=lambda question, options: 12,  # three passes with rules of their own
    in_double=True,
)
def lrp_relevance(question: Question, *, start_layer: int = 0, normalise: bool = True) -> Scored:
    """Score each token by relevant attention, times its gradient, that leads to the prediction.

    Layers below `start_layer`, which counts from the top if negative, are left out. With
    `normalise`, what a position keeps and what it reads add up to one. Before the first layer each
    position is relevant to itself; this is in the maps, but not in the scores.
    """
    through = sites_in_turn(question.subject)
    sites = layers_from(through, start_layer)
    related = [_relate(batch, sites, normalise) for batch in question.batches_holding(through)]
    mixing = torch.cat([each for _, each in related])
    maps = [(Site("all", 0, 1), mixing[:, None])] if question.maps else []
    return Scored(torch.cat([scores for scores, _ in related]), maps, shows="relevance")


def _relate(
    question: Question, sites: Collection[Site], normalise: bool
) -> tuple[TokenScores, HeadMean]:
    """The scores of a batch, and the relevance of each token to each position that is read."""
    arrived = attention_relevance(question, sites)
    dtype = question.subject.dtype
    if not arrived.lost <= LOST.get(dtype, LOST_COARSE):
        raise without_rule(
            question.subject.model,
            f"this model does not conserve relevance: {arrived.lost:.1%} of it is lost or added "
            "on the way, so one of its operations has no rule",
        )
    found = gradients_and_readout(question, sites)
    layout = Layout.of(question)
    reads = [
        layout.check((*layout.names(call.site.kind), _wide(weigh_heads(relevance, gradient))))
        for relevance, (call, gradient) in zip(arrived.attention, found.held, strict=True)
    ]
    mixing, kept = (
        layout.matrix(each, len(question)) for each in follow(layout.lengths, reads, normalise)
    )
    return read_row(mixing - kept, found.readout), mixing


def _wide(layer: HeadMean) -> HeadMean:
    """A layer in float64 where there is that: what it adds is small beside the one that stays."""
    return layer if layer.device.type == "mps" else layer.double()


def follow(
    lengths: Mapping[str, int], reads: Sequence[Read], normalise: bool
) -> tuple[Relevance, Relevance]:
    """The product of all layers over the positions of all streams, and what stayed in place."""
    relevance = begin(lengths, reads[0][2])
    kept = relevance
    for reader, other, layer in reads:
        total = (
            1 + layer.sum(dim=-1, keepdim=True) if normalise else torch.ones_like(layer[..., :1])
        )
        relevance = {**relevance, **_read(relevance, reader, other, layer, total)}
        kept = {**kept, (reader, reader): kept[reader, reader] / total}
    return relevance, kept


def _read(
    relevance: Relevance, reader: str, other: str, layer: HeadMean, total: Tensor
) -> Relevance:
    """What the reader has and what it reads from the other stream, divided by the total."""
    updated = {}
    for name in {end for start, end in relevance if start in (reader, other)}:
        own, read = relevance.get((reader, name)), relevance.get((other, name))
        gained = 0 if read is None else layer @ read
        updated[reader, name] = (gained if own is None else own + gained) / total
    return updated
