"""Attention rollout: follow attention down through the layers, residual stream included.

Abnar and Zuidema, "Quantifying Attention Flow in Transformers", ACL 2020.
"""

from collections.abc import Sequence

import torch

from attlas.errors import UsageError
from attlas.methods.method import Scored, method
from attlas.models.question import Question
from attlas.models.tap import Call
from attlas.quantities.token_rows import fuse_heads, read_row
from attlas.results import Site
from attlas.shapes import HeadMean

TINY = 1e-30  # a row without any weight stays without


@method(
    family="W",
    signed=False,
    of=None,
    paper="arXiv:2005.00928",
    reading="How much of each token reaches the position that the model predicts from.",
)
def attention_rollout(question: Question, *, residual: float = 0.5, fusion: str = "mean") -> Scored:
    """Score each token by how much of it reaches the position the model predicts from.

    `residual` is the share of every layer that bypasses attention; the paper takes one half.
    `fusion` joins the heads: mean, max or min. The scores sum to one. Of the target, only the
    positions it is read from matter: rollout sees no output.
    """
    if not 0 <= residual <= 1:
        raise UsageError(f"residual is a share, between 0 and 1, not {residual}")
    calls = question.attention()
    kinds = [call.site.kind for call in calls]
    layers = {kind: _fused(calls, kind, fusion) for kind in set(kinds)}
    if "cross" in kinds:
        mixing = roll_out_to_source(layers["encoder"], layers["decoder"], layers["cross"], residual)
        mixing = mixing if question.inputs.prefix else fold_copy(mixing)
    else:
        mixing = roll_out(layers[kinds[-1]], residual)
    scores = read_row(mixing, question.readout())
    return Scored(scores, [(Site("all", 0, 1), mixing[:, None])])


def roll_out(layers: Sequence[HeadMean], residual: float) -> HeadMean:
    """Chain the layers, lowest first, each mixed with the identity."""
    identity = torch.eye(layers[0].shape[-1]).to(layers[0])
    mixing = identity.expand_as(layers[0])
    for layer in layers:
        mixing = with_residual(layer, residual) @ mixing
    return mixing


def roll_out_to_source(
    encoder: Sequence[torch.Tensor],  # each `[batch, source, source]`
    decoder: Sequence[torch.Tensor],  # each `[batch, prefix, prefix]`
    cross: Sequence[torch.Tensor],  # each `[batch, prefix, source]`
    residual: float,
) -> torch.Tensor:
    """How much of each source and prefix token is in each position of the decoder's last layer.

    `[batch, prefix, source + prefix]`. Each decoder layer mixes its own positions, then takes in
    the rolled-out encoder by its cross-attention; both keep `residual` of what was there.
    """
    source = roll_out(encoder, residual)
    rows, width = decoder[0].shape[-1], source.shape[-1]
    written = torch.eye(rows).to(source).expand_as(decoder[0])
    mixing = torch.cat([source.new_zeros(len(source), rows, width), written], dim=-1)
    for own, other in zip(decoder, cross, strict=True):
        mixing = with_residual(own, residual) @ mixing
        share = other.sum(dim=-1, keepdim=True)  # below one where an attention sink took the rest
        taken_in = torch.nn.functional.pad(other @ source, (0, rows))
        kept, total = residual * mixing, residual + (1 - residual) * share
        mixing = (kept + (1 - residual) * taken_in) / total.clamp_min(TINY)
    return mixing


def fold_copy(mixing: torch.Tensor) -> HeadMean:
    """Put what a decoder holds of its own copy of the source on the tokens it is a copy of.

    Encoder–decoders that classify hand their decoder the source again, one place late: position j
    holds token j - 1, and the first one the start token, which is counted to the last token.
    """
    source, copy = mixing.split(mixing.shape[-1] // 2, dim=-1)
    folded: torch.Tensor = source + copy.roll(-1, dims=-1)
    return folded


def with_residual(layer: HeadMean, residual: float) -> HeadMean:
    """The layer with its bypass, rows summing to one."""
    identity = torch.eye(layer.shape[-1]).to(layer)
    mixed = residual * identity + (1 - residual) * layer
    return mixed / mixed.sum(dim=-1, keepdim=True).clamp_min(TINY)


def _fused(calls: Sequence[Call], kind: str, fusion: str) -> list[HeadMean]:
    return [fuse_heads(call.weights, fusion) for call in calls if call.site.kind == kind]
