"""Attention rollout: follow attention through all layers, including the residual stream.

Abnar and Zuidema, "Quantifying Attention Flow in Transformers", ACL 2020.
"""

from collections.abc import Sequence

import torch

from attlas.errors import UnsupportedModelError, UsageError
from attlas.methods.support.method import Scored, method
from attlas.methods.support.token_rows import (
    check_share,
    follow,
    fuse_heads,
    read_row,
    sites_in_turn,
)
from attlas.methods.support.top_down import rolled_row
from attlas.models.asking.question import Question
from attlas.models.asking.reading import fold_attention
from attlas.models.rows.handed import RowSlice
from attlas.models.rows.handing import hand_over, is_for_rows
from attlas.models.tap.call import Call
from attlas.results import Site
from attlas.shapes import HeadMean

TINY = 1e-30  # keeps a row without any weight at zero


@method(
    family="W",
    signed=False,
    of=None,
    paper="arXiv:2005.00928",
    maps="all",
    reading="How much of each token reaches the position that the model predicts from.",
    needs=("attention",),
    many_targets=True,
    fills=True,
    learns=True,
    by_rows=True,
    passes=1,
)
def attention_rollout(
    question: Question,
    *,
    residual: float = 0.5,
    fusion: str = "mean",
    discard: float = 0.0,
    head: int | None = None,
) -> Scored:
    """Score each token by how much of it reaches the position the model predicts from.

    `residual` is the share of every layer that bypasses attention; the paper takes one half.
    `fusion` combines the heads: mean, max or min. `head` takes a single head of the last layer (in
    an encoder–decoder, of the last cross-attention) and all heads below. `discard` is the share of
    each layer's weights that is set to zero, smallest first. The scores sum to one. Of the target,
    only the positions it is read from matter: rollout does not look at the output.
    """
    check_share("residual", residual)
    check_share("discard", discard)
    sites = sites_in_turn(question.subject)
    last = last_site(sites)
    if head is not None and not 0 <= head < last.heads:
        raise UsageError(f"unknown head {head}: the last layer has heads 0 to {last.heads - 1}")

    def combine(call: Call | RowSlice) -> HeadMean:
        if head is None or call.site != last:
            return fuse_heads(call.weights, fusion)
        return fuse_heads(call.weights[:, head : head + 1], fusion)

    if discard == 0 and is_for_rows(question, sites):
        found = hand_over(question, sites)
        fuse = None if fusion == "mean" and head is None else combine
        return Scored(rolled_row(found.calls, found.readout, residual, fuse))
    rolling = start_rolling(question, sites, residual)

    def add(call: Call) -> None:
        rolling.add(call.site.kind, drop_smallest(combine(call), discard))

    readout = fold_attention(question, add, sites).readout
    mixing = finish_rolling(question, sites, rolling)
    maps = [(Site("all", 0, 1), mixing[:, None])] if question.maps else []
    return Scored(read_row(mixing, readout), maps, shows="rolled-out attention")


def start_rolling(question: Question, sites: Sequence[Site], residual: float) -> "Rolling":
    """An empty rollout for these sites, with this share of every layer bypassing attention."""
    crossing = last_site(sites).kind == "cross"
    unmixed = crossing and all(site.kind in ("decoder", "cross") for site in sites)
    source = question.inputs.source
    return Rolling(residual, source.stop - source.start if unmixed else 0)


def finish_rolling(question: Question, sites: Sequence[Site], rolling: "Rolling") -> HeadMean:
    """How much of each token is in each position of the highest layer."""
    copied = last_site(sites).kind == "cross" and not question.inputs.prefix
    return fold_copy(rolling.mixing) if copied else rolling.mixing


def last_site(sites: Sequence[Site]) -> Site:
    """The site nearest to the prediction; in an encoder–decoder, the last cross-attention."""
    crossing = [site for site in sites if site.kind == "cross"]
    return (crossing or sites)[-1]


def drop_smallest(layer: HeadMean, share: float) -> HeadMean:
    """Set this share of the weights of each map to zero, smallest first.

    Weights that are zero already (of later tokens) do not count. Equal weights are dropped together
    or not at all. The largest weight of every row stays, so no row becomes empty.
    """
    if share == 0:
        return layer
    flat = layer.flatten(1).sort(dim=1).values
    zeros = (flat == 0).sum(dim=1, keepdim=True)
    dropped = (share * (flat.shape[1] - zeros)).long()
    edge = flat.gather(1, (zeros + dropped).clamp_max(flat.shape[1] - 1))[:, :, None]
    protected = layer >= layer.amax(dim=-1, keepdim=True)
    return layer.where((layer >= edge) | protected, 0)


class Rolling:
    """The product of all layers so far; layers are added one by one, lowest first.

    In an encoder–decoder each decoder layer mixes its own positions, then reads the rolled-out
    encoder by its cross-attention; both keep the share `residual` of what was there.
    """

    def __init__(self, residual: float, unmixed: int = 0) -> None:
        self._residual = residual
        self._unmixed = unmixed  # the length of a source whose encoder has no attention
        self._kind = ""  # the kind of the first stack: the only one, or the encoder
        self._first: torch.Tensor | None = None  # `[batch, position, position]`
        self._second: torch.Tensor | None = None  # the decoder's: `[batch, prefix, all tokens]`

    @property
    def mixing(self) -> torch.Tensor:
        """How much of each token is in each position of the highest layer so far."""
        product = self._first if self._second is None else self._second
        if product is None:
            raise ValueError("no layer has been added")
        return product

    def add(self, kind: str, layer: torch.Tensor) -> None:
        """Add one more layer, its heads combined; a layer of kind `cross` reads the encoder."""
        if self._first is None and self._unmixed:
            self._kind = "encoder"
            self._first = torch.eye(self._unmixed).to(layer).repeat(len(layer), 1, 1)
            self._second = begin(self._first, layer.new_zeros(len(layer), *layer.shape[1:2] * 2))
        self._kind = self._kind or kind
        if self._first is None:
            self._first = with_residual(layer, self._residual)
        elif kind == self._kind:
            self._first = follow(with_residual(layer, self._residual), self._first)
        elif kind == "cross":
            self._second = take_in(self._first, layer, self.mixing, self._residual)
        else:
            below = begin(self._first, layer) if self._second is None else self._second
            self._second = follow(with_residual(layer, self._residual), below)


def begin(source: torch.Tensor, decoder: torch.Tensor) -> torch.Tensor:
    """What a decoder holds before its first layer, `[batch, prefix, source + prefix]`."""
    rows, width = decoder.shape[-1], source.shape[-1]
    written = torch.eye(rows).to(source).expand_as(decoder)
    return torch.cat([source.new_zeros(len(source), rows, width), written], dim=-1)


def take_in(
    source: torch.Tensor, cross: torch.Tensor, mixing: torch.Tensor, residual: float
) -> torch.Tensor:
    """What a decoder holds after its cross-attention has read the rolled-out encoder."""
    if cross.shape[1] != mixing.shape[1]:
        raise UnsupportedModelError(
            f"cross-attention of {cross.shape[1]} positions cannot follow a layer of "
            f"{mixing.shape[1]}: the model changes its positions on the way"
        )
    share = cross.sum(dim=-1, keepdim=True)  # below one if an attention sink took the rest
    taken_in = torch.nn.functional.pad(
        follow(cross, source), (0, mixing.shape[-1] - source.shape[-1])
    )
    kept, total = residual * mixing, residual + (1 - residual) * share
    return (kept + (1 - residual) * taken_in) / total.clamp_min(TINY)


def fold_copy(mixing: torch.Tensor) -> HeadMean:
    """Move what a decoder holds of its copy of the source to the tokens of the source.

    Encoder–decoders that classify give the source to the decoder as well, shifted by one: position
    j holds token j - 1, and the first position the start token, which counts as the last token.
    """
    source, copy = mixing.split(mixing.shape[-1] // 2, dim=-1)
    folded: torch.Tensor = source + copy.roll(-1, dims=-1)
    return folded


def with_residual(layer: HeadMean, residual: float) -> HeadMean:
    """The layer with the share that bypasses it; rows sum to one."""
    queries, keys = layer.shape[-2:]
    if queries != keys:
        raise UnsupportedModelError(
            f"attention of {queries} positions over {keys} cannot be rolled out: a layer must keep "
            "its positions"
        )
    mixed = (1 - residual) * layer
    mixed.diagonal(dim1=-2, dim2=-1).add_(residual)
    return mixed.div_(mixed.sum(dim=-1, keepdim=True).clamp_min(TINY))
