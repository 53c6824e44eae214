"""Attention rollout: follow attention down through the layers, residual stream included.

Abnar and Zuidema, "Quantifying Attention Flow in Transformers", ACL 2020.
"""

from collections.abc import Sequence

import torch

from attlas.errors import UnsupportedModelError, UsageError
from attlas.methods.support.method import Scored, method
from attlas.methods.support.token_rows import check_share, fuse_heads, mixing_sites, read_row
from attlas.models.asking.question import Question
from attlas.models.asking.reading import fold_attention
from attlas.models.tap.call import Call
from attlas.results import Site
from attlas.shapes import HeadMean

TINY = 1e-30  # a row without any weight stays without


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
    `fusion` joins the heads: mean, max or min; `head` takes one head alone of the last layer, the
    cross-attention's in an encoder–decoder, on top of what is below. `discard` is the share of each
    layer's weights, smallest first, that is left out. The scores sum to one. Of the target, only
    the positions it is read from matter: rollout sees no output.
    """
    check_share("residual", residual)
    check_share("discard", discard)
    sites = mixing_sites(question.subject.sites)
    last = last_site(sites)
    if head is not None and not 0 <= head < last.heads:
        raise UsageError(f"unknown head {head}: the last layer has heads 0 to {last.heads - 1}")
    rolling = start_rolling(question, sites, residual)

    def add(call: Call) -> None:
        weights = call.weights
        if head is not None and call.site == last:
            weights = weights[:, head : head + 1]
        rolling.add(call.site.kind, drop_smallest(fuse_heads(weights, fusion), discard))

    readout = fold_attention(question, add, sites).readout
    mixing = finish_rolling(question, sites, rolling)
    maps = [(Site("all", 0, 1), mixing[:, None])] if question.maps else []
    return Scored(read_row(mixing, readout), maps)


def start_rolling(question: Question, sites: Sequence[Site], residual: float) -> "Rolling":
    """The layers of a question's sites to come, each with this bypass."""
    crossing = last_site(sites).kind == "cross"
    unmixed = crossing and all(site.kind in ("decoder", "cross") for site in sites)
    source = question.inputs.source
    return Rolling(residual, source.stop - source.start if unmixed else 0)


def finish_rolling(question: Question, sites: Sequence[Site], rolling: "Rolling") -> HeadMean:
    """How much of each token is in each position that may be read."""
    copied = last_site(sites).kind == "cross" and not question.inputs.prefix
    return fold_copy(rolling.mixing) if copied else rolling.mixing


def last_site(sites: Sequence[Site]) -> Site:
    """The site nearest to the prediction: of an encoder–decoder, its last cross-attention."""
    crossing = [site for site in sites if site.kind == "cross"]
    return (crossing or sites)[-1]


def drop_smallest(layer: HeadMean, share: float) -> HeadMean:
    """Set this share of the weights of each map to zero, smallest first; those at the edge stay.

    What is zero already (a later token) is not counted, equal weights are left out together or not
    at all, and the largest weight of every row is protected: no position is left with nothing.
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
    """Layers multiplied up as they come, lowest first; of none more than the product is held.

    In an encoder–decoder each decoder layer mixes its own positions, then takes in the rolled-out
    encoder by its cross-attention; both keep `residual` of what was there.
    """

    def __init__(self, residual: float, unmixed: int = 0) -> None:
        self._residual = residual
        self._unmixed = unmixed  # the length of a source whose encoder has no attention
        self._kind = ""  # of the sites of the first stack: the only one, or the encoder
        self._first: torch.Tensor | None = None  # `[batch, position, position]`
        self._second: torch.Tensor | None = None  # of the decoder: `[batch, prefix, all tokens]`

    @property
    def mixing(self) -> torch.Tensor:
        """How much of each token is in each position of the highest layer so far."""
        found = self._first if self._second is None else self._second
        if found is None:
            raise ValueError("no layer has been added")
        return found

    def add(self, kind: str, layer: torch.Tensor) -> None:
        """Take in one more layer, its heads fused; a layer of kind `cross` reads the encoder."""
        if self._first is None and self._unmixed:
            self._kind = "encoder"
            self._first = torch.eye(self._unmixed).to(layer).repeat(len(layer), 1, 1)
        self._kind = self._kind or kind
        if self._first is None:
            self._first = with_residual(layer, self._residual)
        elif kind == self._kind:
            self._first = with_residual(layer, self._residual) @ self._first
        elif kind == "cross":
            self._second = take_in(self._first, layer, self.mixing, self._residual)
        else:
            below = begin(self._first, layer) if self._second is None else self._second
            self._second = with_residual(layer, self._residual) @ below


def begin(source: torch.Tensor, decoder: torch.Tensor) -> torch.Tensor:
    """What a decoder holds before its first layer, `[batch, prefix, source + prefix]`: its own."""
    rows, width = decoder.shape[-1], source.shape[-1]
    written = torch.eye(rows).to(source).expand_as(decoder)
    return torch.cat([source.new_zeros(len(source), rows, width), written], dim=-1)


def take_in(
    source: torch.Tensor, cross: torch.Tensor, mixing: torch.Tensor, residual: float
) -> torch.Tensor:
    """What a decoder holds once its cross-attention has read the rolled-out encoder."""
    share = cross.sum(dim=-1, keepdim=True)  # below one where an attention sink took the rest
    taken_in = torch.nn.functional.pad(cross @ source, (0, mixing.shape[-1] - source.shape[-1]))
    kept, total = residual * mixing, residual + (1 - residual) * share
    return (kept + (1 - residual) * taken_in) / total.clamp_min(TINY)


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
    queries, keys = layer.shape[-2:]
    if queries != keys:
        raise UnsupportedModelError(
            f"attention of {queries} positions over {keys} cannot be rolled out: a layer must keep "
            "its positions"
        )
    mixed = (1 - residual) * layer
    mixed.diagonal(dim1=-2, dim2=-1).add_(residual)
    return mixed.div_(mixed.sum(dim=-1, keepdim=True).clamp_min(TINY))
