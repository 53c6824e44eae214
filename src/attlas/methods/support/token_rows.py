"""From attention maps to a score for each token: combine the heads, read the right rows."""

from collections import Counter
from collections.abc import Sequence

import torch
from torch import Tensor

from attlas.errors import NotDefinedError, UnknownNameError, UnsupportedModelError, UsageError
from attlas.models.asking.open_model import OpenModel
from attlas.models.encoding.inputs import Inputs
from attlas.models.facts.anatomy import anatomy
from attlas.results import Site
from attlas.shapes import Attention, HeadMean, QueryWeights, TokenScores

FUSIONS = ("mean", "max", "min")


def fuse_heads(attention: Attention, fusion: str = "mean") -> HeadMean:
    """Combine all heads by their mean, maximum or minimum, in float32 or float64."""
    if fusion not in FUSIONS:
        raise UnknownNameError("head fusion", fusion, FUSIONS)
    wide = attention if attention.dtype == torch.float64 else attention.float()
    if fusion == "mean":
        return wide.mean(dim=1)
    return wide.amax(dim=1) if fusion == "max" else wide.amin(dim=1)


def check_share(name: str, value: float) -> None:
    """Raise an error unless this option is a share."""
    if not 0 <= value <= 1:
        raise UsageError(f"{name} is a share, between 0 and 1, not {value}")


def choose_layers(layers: Sequence[Site], layer: int | None) -> list[Site]:
    """One layer, counted from the top if negative, or all of them for None."""
    if layer is None:
        return list(layers)
    if not -len(layers) <= layer < len(layers):
        raise UsageError(f"unknown layer {layer}: this model has layers 0 to {len(layers) - 1}")
    return [layers[layer]]


def read_row(fused: Tensor, readout: Tensor) -> Tensor:
    """The row that the prediction is read from, `[batch, key]`; several rows by their shares.

    The map of one input serves every row of the readout.
    """
    if fused.shape[1] != readout.shape[1]:
        raise UnsupportedModelError(
            f"an attention of {fused.shape[1]} positions has no rows for the {readout.shape[1]} "
            "that the prediction is read from"
        )
    return torch.einsum("bqk,bq->bk", fused.expand(len(readout), -1, -1), readout.to(fused))


def spread_over_tokens(inputs: Inputs, rows: Sequence[tuple[str, Tensor]]) -> TokenScores:
    """Add up rows over keys at the tokens that the keys of each kind of site stand for."""
    first = rows[0][1]
    scores = first.new_zeros((len(first), len(inputs.tokens[0])))
    for kind, row in rows:
        keys = inputs.queries_and_keys(kind)[1]
        if row.shape[1] != keys.stop - keys.start:
            raise UnsupportedModelError(
                f"the attention of kind {kind} is over {row.shape[1]} positions, not the "
                f"{keys.stop - keys.start} tokens of the input"
            )
        scores[:, keys.start : keys.stop] += row
    return scores


def reading_kinds(inputs: Inputs, sites: Sequence[Site]) -> list[str]:
    """The kinds of sites that the prediction is read through: the decoder's two, or the last.

    If the input has a picture, they are all kinds; one that plays no part has a readout of zeros.
    """
    kinds = [site.kind for site in sites]
    if inputs.picture is not None:
        return list(dict.fromkeys(kinds))
    if inputs.prefix is None:
        return [kinds[-1]]
    return [kind for kind in ("cross", "decoder") if kind in kinds]


def reading_sites(inputs: Inputs, sites: Sequence[Site], layer: int | None) -> list[Site]:
    """The sites that the prediction is read through: one layer of each kind, or all."""
    kinds = reading_kinds(inputs, sites)
    layers = [[site for site in sites if site.kind == kind] for kind in kinds]
    return [site for each in layers for site in choose_layers(each, layer)]


def mixing_sites(sites: Sequence[Site]) -> list[Site]:
    """The sites that mix tokens on the way to the prediction; in an encoder–decoder, all."""
    kinds = {site.kind for site in sites}
    if "vision" in kinds and kinds != {"vision"}:
        raise NotDefinedError(
            "the text and the picture run through stacks of their own, and this method follows "
            "attention through one stack: use generic_relevance"
        )
    reads_source = any(site.kind == "cross" for site in sites)
    return [site for site in sites if reads_source or site.kind == sites[-1].kind]


def sites_in_turn(subject: OpenModel) -> list[Site]:
    """The sites that mix tokens, for methods that follow them one after the other."""
    if subject.merges_streams:
        raise NotDefinedError(
            f"{type(subject.model).__name__} reads its own stream and the encoder's in one "
            "softmax, and this method follows attention from one site to the next: use "
            "value_zeroing"
        )
    check_followed(subject)
    return mixing_sites(subject.sites)


def check_followed(subject: OpenModel) -> None:
    """Refuse a model whose tokens are not mixed by layers of attention alone."""
    if any(site.kind == "pooling" for site in subject.sites):
        raise NotDefinedError(
            f"{type(subject.model).__name__} pools its tokens by attention, and this method "
            "follows attention from token to token through layers: use raw_attention or "
            "gradient_attention"
        )
    network = anatomy(subject.model).network
    if network is not None:
        raise NotDefinedError(
            f"{type(subject.model).__name__} mixes its tokens by a recurrent network "
            f"({network}), and this method follows attention alone: use "
            "raw_attention or gradient_attention"
        )


def follow(layer: Tensor, below: Tensor) -> Tensor:
    """What a layer makes of what was below it: the product of the two."""
    if layer.shape[-1] != below.shape[-2]:
        raise UnsupportedModelError(
            f"attention over {layer.shape[-1]} positions cannot follow a layer of "
            f"{below.shape[-2]}: the model changes its positions on the way"
        )
    return layer @ below


def readout_of(inputs: Inputs, kind: str, readout: QueryWeights) -> Tensor:
    """The readout over the queries of one kind of sites, `[batch, query]`."""
    if inputs.picture is None:
        return readout
    queries = inputs.queries_and_keys(kind)[0]
    return readout[:, queries.start : queries.stop]


class LayerMean:
    """The mean over layers of maps that are added one by one, for each kind of site."""

    def __init__(self) -> None:
        self._sums: dict[str, HeadMean] = {}
        self._counts: Counter[str] = Counter()

    def add(self, kind: str, fused: HeadMean) -> None:
        """Add the map of one more layer; the map may be overwritten."""
        self._sums[kind] = self._sums[kind].add_(fused) if kind in self._sums else fused
        self._counts[kind] += 1

    def rows(self, inputs: Inputs, readout: QueryWeights) -> list[tuple[str, Tensor]]:
        """For each kind, the row that the prediction is read from, `[batch, key]`."""
        return [
            (kind, read_row(total, readout_of(inputs, kind, readout)) / self._counts[kind])
            for kind, total in self._sums.items()
        ]
