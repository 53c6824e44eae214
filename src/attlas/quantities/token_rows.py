"""From attention maps to a score for each token: fuse the heads, take the row that is read."""

from collections.abc import Sequence

import torch
from torch import Tensor

from attlas.errors import UnknownNameError, UnsupportedModelError, UsageError
from attlas.models.inputs import Inputs
from attlas.results import Site
from attlas.shapes import Attention, HeadMean, QueryWeights, TokenScores

FUSIONS = ("mean", "max", "min")


def fuse_heads(attention: Attention, fusion: str = "mean") -> HeadMean:
    """One map of all heads, in no less than float32: their mean, maximum or minimum."""
    if fusion not in FUSIONS:
        raise UnknownNameError("head fusion", fusion, FUSIONS)
    wide = attention if attention.dtype == torch.float64 else attention.float()
    if fusion == "mean":
        return wide.mean(dim=1)
    return wide.amax(dim=1) if fusion == "max" else wide.amin(dim=1)


def choose_layers(layers: Sequence[Attention], layer: int | None) -> list[Attention]:
    """One layer, counted from the top if negative, or all of them for None."""
    if layer is None:
        return list(layers)
    if not -len(layers) <= layer < len(layers):
        raise UsageError(f"unknown layer {layer}: this model has layers 0 to {len(layers) - 1}")
    return [layers[layer]]


def read_row(fused: HeadMean, readout: QueryWeights) -> Tensor:
    """The row that the prediction is read from, `[batch, key]`; several by their shares."""
    return torch.einsum("bqk,bq->bk", fused, readout.to(fused))


def spread_over_tokens(inputs: Inputs, rows: Sequence[tuple[str, Tensor]]) -> TokenScores:
    """Put rows over keys where their tokens are: of each kind of site, its keys' stream."""
    first = rows[0][1]
    scores = first.new_zeros((len(inputs), len(inputs.tokens[0])))
    for kind, row in rows:
        keys = inputs.queries_and_keys(kind)[1]
        if row.shape[1] != keys.stop - keys.start:
            raise UnsupportedModelError(
                f"the attention of kind {kind} is over {row.shape[1]} places, not the "
                f"{keys.stop - keys.start} tokens of the input"
            )
        scores[:, keys.start : keys.stop] += row
    return scores


def reading_kinds(inputs: Inputs, sites: Sequence[Site]) -> list[str]:
    """The kinds of sites that the prediction is read through: the decoder's two, or the last."""
    kinds = [site.kind for site in sites]
    if inputs.prefix is None:
        return [kinds[-1]]
    return [kind for kind in ("cross", "decoder") if kind in kinds]
