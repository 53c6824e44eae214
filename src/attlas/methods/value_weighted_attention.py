"""Value-weighted attention: the norm of what each token adds, not only its weight.

Kobayashi et al., "Attention is Not Only a Weight", EMNLP 2020, and "Incorporating Residual and
Normalization Layers into Analysis of Masked Language Models", EMNLP 2021.
"""

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import cached_property, partial

import torch
from torch import Tensor

from attlas.errors import UnsupportedModelError
from attlas.methods.attention_rollout import TINY, finish_rolling, start_rolling
from attlas.methods.support.method import Scored, method
from attlas.methods.support.token_rows import (
    LayerMean,
    mixing_sites,
    read_row,
    reading_sites,
    spread_over_tokens,
)
from attlas.methods.support.top_down import own_weights, roll_through, support, through_map
from attlas.models.asking.question import Question
from attlas.models.decomposing.projections import Projected, fold_projected, hand_over_projected
from attlas.models.rows.handed import RowSlice
from attlas.models.rows.handing import is_for_rows
from attlas.results import Site
from attlas.shapes import (
    Attention,
    BatchScores,
    GatedValues,
    HeadMatrices,
    HeadMean,
    HeadVectors,
    Vectors,
)

NUMBERS_AT_ONCE = 2**24  # of values that a gate changes for each query
BYPASS = 0.5  # share of a rolled-out layer that bypasses attention, without `residual`


@method(
    family="V",
    signed=False,
    of=None,
    paper="Kobayashi et al. 2020, arXiv:2004.10102; 2021, arXiv:2109.07152",
    maps="sites",
    reading="The size of what attention moves from each token to where the model predicts from.",
    needs=("attention",),
    many_targets=True,
    fills=True,
    learns=True,
    by_rows=True,
    passes=1,
)
def value_weighted_attention(
    question: Question,
    *,
    layer: int | None = -1,
    residual: bool = False,
    layer_norm: bool = False,
    rolled_out: bool = False,
) -> Scored:
    """Score each token by the norm of what attention adds of it to the predicting position.

    What is added is the token's value after the output projection, times its weight, summed over
    heads. Where the model multiplies the mixed values of a query by a gate, the gate is held as it
    is. `layer` counts from the top if negative; None takes the mean over all layers. `residual`
    adds the stream that bypasses attention to the token's own contribution. `layer_norm` applies
    the norm behind attention, as it acted on this input. `rolled_out` multiplies the shares of all
    layers, half of each bypassing attention unless `residual` is set, and ignores `layer`. Norms
    have no direction: contributions that cancel each other are both large.
    """
    sites = question.subject.sites
    chosen = mixing_sites(sites) if rolled_out else reading_sites(question.inputs, sites, layer)
    crossing = any(site.kind == "cross" for site in chosen)
    if rolled_out and residual and crossing:
        raise UnsupportedModelError(
            "cross-attention has no key for the stream that bypasses it, so residual and "
            "rolled_out cannot be combined in an encoder–decoder; leave residual out"
        )
    bypass = 0.0 if residual else BYPASS
    take = partial(Contributions, residual=residual, layer_norm=layer_norm)
    if is_for_rows(question, chosen):
        return _by_rows(question, chosen, take, bypass if rolled_out else None)
    rolling = start_rolling(question, chosen, bypass) if rolled_out else None
    mean, maps, notes = LayerMean(), [], []

    def add(projected: Projected) -> None:
        added = take(projected)
        if question.maps:
            maps.append((projected.site, added.heads()))
        if projected.site not in chosen:
            return
        norms = added.norms()
        if rolling is not None:
            rolling.add(projected.site.kind, shares(norms))
        else:
            mean.add(projected.site.kind, norms)
        if added.reads_itself:
            notes.append((projected.site.name, added.mixing_ratio().tolist()))

    readout = fold_projected(question, add, None if question.maps else chosen).readout
    if rolling is not None:
        scores = read_row(finish_rolling(question, chosen, rolling), readout)
    else:
        scores = spread_over_tokens(question.inputs, mean.rows(question.inputs, readout))
    told = describe(question, notes)
    return Scored(scores, maps, row_notes=told, shows="length of attention × value")


def _by_rows(
    question: Question,
    chosen: Sequence[Site],
    take: "Callable[[Projected], Contributions]",
    bypass: float | None,
) -> Scored:
    """The scores without any map: the row of the readout alone, rolled out if layers bypass."""
    found, projected = hand_over_projected(question, chosen)
    row, notes, rows = found.readout, [], []
    for call, its in zip(reversed(found.calls), reversed(projected), strict=True):
        added = take(replace(its, own_weights=own_weights(call).to(its.values)))
        if bypass is None:
            rows.append(through_map(call, row, support(row), added.norms_of)[0])
        else:
            row = roll_through(call, row, bypass, added.shares_of)
        notes.append((call.site.name, added.mixing_ratio().tolist()))
    scores = row if bypass is not None else torch.stack(rows).mean(dim=0)
    placed = spread_over_tokens(question.inputs, [(chosen[0].kind, scores)])
    return Scored(placed, row_notes=describe(question, notes[::-1]))


class Contributions:
    """What each key adds to each query of one attention, and what the query has itself."""

    def __init__(self, projected: Projected, *, residual: bool, layer_norm: bool) -> None:
        if residual and projected.stream is None:
            raise UnsupportedModelError(
                f"residual cannot be used: no stream was found that is added unchanged to the "
                f"output of {projected.site.name}"
            )
        if layer_norm and projected.norm is None:
            raise UnsupportedModelError(
                f"layer_norm cannot be used: no layer norm follows the attention "
                f"{projected.site.name}; it is for encoders like BERT, with the norm last"
            )
        self._projected = projected
        self._norm = projected.norm if layer_norm else None
        self._stream = projected.stream if residual else None
        self._matrix = self._normed(projected.matrix)

    @cached_property
    def _products(self) -> Tensor:
        """The inner products between the heads of each key, `[batch, key, head, head]`."""
        values, matrix = self._projected.values, self._matrix
        most = max(1, NUMBERS_AT_ONCE // (len(values) * matrix[:, 0].numel()))
        parts = (torch.einsum("bhkw,hwf->bhkf", p, matrix) for p in values.split(most, dim=2))
        return torch.cat([head_products(part) for part in parts], dim=1)

    @property
    def reads_itself(self) -> bool:
        """Whether the keys are the queries."""
        return not self._projected.site.kind.startswith("cross")

    def heads(self) -> Attention:
        """The norm of what each head adds; the residual stream belongs to no head."""
        if self._projected.gate is None:
            vectors = self._normed(self._projected.through())
            norms = norms_of_heads(self._projected.weights, vectors)
        else:
            norms = in_parts(self._projected, self._matrix, gated_norms_of_heads)
            norms = norms.permute(0, 3, 1, 2)
        return norms if self._norm is None else norms / self._norm.spread[:, None]

    def norms(self) -> HeadMean:
        """The norm of what all heads add together, with any residual stream on the diagonal."""
        if self._projected.gate is None:
            norms = norms_by_products(self._projected.weights, self._products)
        else:
            norms = in_parts(self._projected, self._matrix, gated_norms_of_sums)
        if self._stream is not None and self.reads_itself:
            norms.diagonal(dim1=-2, dim2=-1).copy_(self._own_norms)
        return norms if self._norm is None else norms / self._norm.spread

    def norms_of(self, part: RowSlice) -> HeadMean:
        """Like `norms`, for some query rows over the keys that these see."""
        weights = part.weights.to(self._projected.values.dtype)
        if self._projected.gate is None:
            norms = norms_by_products(weights, self._products[:, part.keys])
        else:
            some = self._projected.narrowed(weights, part.rows, part.keys)
            norms = in_parts(some, self._matrix, gated_norms_of_sums)
        if self._stream is not None:
            places = torch.arange(len(part.rows), device=weights.device)
            norms[:, places, part.rows - part.keys.start] = self._own_norms[:, part.rows]
        return norms if self._norm is None else norms / self._norm.spread[:, part.rows]

    def shares_of(self, part: RowSlice) -> HeadMean:
        """The norms of some query rows, each row scaled to sum to one."""
        return shares(self.norms_of(part))

    @cached_property
    def _own_norms(self) -> Tensor:
        norms: Tensor = self._own().norm(dim=-1)
        return norms

    def mixing_ratio(self) -> BatchScores:
        """The share of each position that comes from others."""
        attended = self._projected.output - self._projected.bias
        return mixing_ratio(self._normed(attended - self._projected.own_terms()), self._own())

    def _own(self) -> Tensor:
        own = self._projected.own_terms()
        return self._normed(own if self._stream is None else own + self._stream)

    def _normed(self, vectors: Tensor) -> Tensor:
        return vectors if self._norm is None else self._norm.apart_from_spread(vectors)


def in_parts(
    projected: Projected, matrix: HeadMatrices, norms_of: Callable[[Tensor, Tensor], Tensor]
) -> Tensor:
    """Norms of what a gate leaves of the values, for some queries at a time."""
    values, queries = projected.values, projected.weights.shape[2]
    most = max(1, NUMBERS_AT_ONCE // max(values.numel(), 1))
    parts = (slice(start, start + most) for start in range(0, queries, most))
    return torch.cat([norms_of(projected.gated(part), matrix) for part in parts], dim=1)


def shares(norms: HeadMean) -> HeadMean:
    """Each row scaled to sum to one."""
    return norms / norms.sum(dim=-1, keepdim=True).clamp_min(TINY)


def describe(question: Question, ratios: list[tuple[str, list[float]]]) -> list[tuple[str, ...]]:
    """For each row of the question, notes on the mixing ratio of each layer."""
    rows = [0] * len(question) if question.is_shared else range(len(question))
    return [tuple(f"{name}: mixing ratio {each[row]:.2f}" for name, each in ratios) for row in rows]


def norms_of_sums(weights: Attention, vectors: HeadVectors) -> HeadMean:
    """The norm of the sum over heads of each weight times its key's vector.

    It is computed from the inner products between the heads of each key, because the vectors of all
    n² pairs would be large; in float64, because heads that cancel leave small differences of large
    squares.
    """
    return norms_by_products(weights, head_products(vectors))


def head_products(vectors: HeadVectors) -> Tensor:
    """The inner products between the heads of each key, `[batch, key, head, head]`."""
    wide = vectors.double()
    return torch.einsum("bhkf,bgkf->bkhg", wide, wide)


def norms_by_products(weights: Attention, products: Tensor) -> HeadMean:
    """The norms of sums over heads, from the inner products between the heads of each key."""
    heads = weights.double()
    halfway = torch.einsum("bhqk,bkhg->bgqk", heads, products)
    return (halfway * heads).sum(dim=1).clamp_min(0).sqrt().to(weights.dtype)


def norms_of_heads(weights: Attention, vectors: HeadVectors) -> Attention:
    """The norm of each weight times its key's vector, for each head."""
    sizes: Tensor = vectors.norm(dim=-1)
    return weights * sizes[:, :, None, :]


def gated_norms_of_sums(gated: GatedValues, matrix: HeadMatrices) -> HeadMean:
    """The norm of the sum over heads of what a gate leaves of each value, through its matrix."""
    norms: Tensor = (gated.flatten(-2) @ matrix.flatten(0, 1)).norm(dim=-1)
    return norms


def gated_norms_of_heads(gated: GatedValues, matrix: HeadMatrices) -> Tensor:
    """The norm of what a gate leaves of each value, through its matrix, `[…, query, key, head]`.

    It is computed from the inner products of the rows of each matrix, as `norms_of_sums` is.
    """
    wide, rows = gated.double(), matrix.double()
    products = torch.einsum("hwf,hvf->hwv", rows, rows)
    squares = torch.einsum("bqkhw,hwv,bqkhv->bqkh", wide, products, wide)
    return squares.clamp_min(0).sqrt().to(gated.dtype)


def mixing_ratio(others: Vectors, own: Vectors) -> BatchScores:
    """The share of a position that comes from others, 0 to 1, averaged over positions.

    `others` is the sum of what the others add to each position, `own` what it contributes itself.
    """
    sizes: Tensor = others.norm(dim=-1)
    total: Tensor = (sizes + own.norm(dim=-1)).clamp_min(TINY)
    return (sizes / total).mean(dim=-1)
