"""Value-weighted attention: the size of what each token adds, not its weight alone.

Kobayashi et al., "Attention is Not Only a Weight: Analyzing Transformers with Vector Norms", EMNLP
2020, and "Incorporating Residual and Normalization Layers into Analysis of Masked Language Models",
EMNLP 2021.
"""

from torch import Tensor

from attlas.errors import UnsupportedModelError
from attlas.methods.attention_rollout import TINY, finish_rolling, start_rolling
from attlas.methods.support.method import Scored, method
from attlas.methods.support.norms import mixing_ratio, norms_of_heads, norms_of_sums
from attlas.methods.support.token_rows import (
    LayerMean,
    mixing_sites,
    read_row,
    reading_sites,
    spread_over_tokens,
)
from attlas.models.asking.question import Question
from attlas.models.decomposing.projections import Projected, fold_projected
from attlas.shapes import Attention, BatchScores, HeadMean

BYPASS = 0.5  # of a rolled-out layer whose own residual is left out


@method(
    family="V",
    signed=False,
    of=None,
    paper="Kobayashi et al. 2020, arXiv:2004.10102; 2021, arXiv:2109.07152",
    maps="sites",
    reading="The size of what attention brings from each token to where the model predicts from.",
    needs=("attention",),
    many_targets=True,
    fills=True,
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

    What is added is the token's value through the output projection, times its weight, summed over
    heads. `layer` counts from the top if negative; None takes the mean over all layers. `residual`
    counts the stream that bypasses attention to the token's own part. `layer_norm` takes each part
    through the norm behind attention, as it acted on this input. `rolled_out` multiplies the shares
    of all layers up, with a bypass of one half where `residual` is not counted, and leaves `layer`
    aside. Norms have no direction: parts that cancel each other are both large.
    """
    sites = question.subject.sites
    chosen = mixing_sites(sites) if rolled_out else reading_sites(question.inputs, sites, layer)
    crossing = any(site.kind == "cross" for site in chosen)
    if rolled_out and residual and crossing:
        raise UnsupportedModelError(
            "cross-attention has no key for the stream that bypasses it: residual cannot be rolled "
            "out in an encoder–decoder; leave it out for a bypass of one half"
        )
    rolling = start_rolling(question, chosen, 0.0 if residual else BYPASS) if rolled_out else None
    mean, maps, notes = LayerMean(), [], []

    def whole(found: Projected) -> None:
        parts = Parts(found, residual=residual, layer_norm=layer_norm)
        maps.append((found.site, parts.heads()))

    def add(found: Projected) -> None:
        parts = Parts(found, residual=residual, layer_norm=layer_norm)
        norms = parts.norms()
        if rolling is not None:
            rolling.add(found.site.kind, shares(norms))
        else:
            mean.add(found.site.kind, norms)
        if parts.reads_itself:
            notes.append((found.site.name, parts.mixing_ratio().tolist()))

    readout = fold_projected(question, add, chosen).readout
    if question.maps:
        fold_projected(question, whole, None)
    if rolling is not None:
        scores = read_row(finish_rolling(question, chosen, rolling), readout)
    else:
        scores = spread_over_tokens(question.inputs, mean.rows(question.inputs, readout))
    return Scored(scores, maps, row_notes=describe(question, notes))


class Parts:
    """What each key adds to each query of one attention, and what the query brings itself."""

    def __init__(self, found: Projected, *, residual: bool, layer_norm: bool) -> None:
        if residual and found.stream is None:
            raise UnsupportedModelError(
                f"no stream was found that is added to the output of {found.site.name} as they "
                "are: this family adds them in another way, and residual is not for it"
            )
        if layer_norm and found.norm is None:
            raise UnsupportedModelError(
                f"no layer norm was found that the stream goes through behind {found.site.name}: "
                "layer_norm is for encoders with their norm last (BERT and its like)"
            )
        self._found = found
        self._norm = found.norm if layer_norm else None
        self._stream = found.stream if residual else None
        self._vectors = self._normed(found.through())

    @property
    def reads_itself(self) -> bool:
        """Whether the keys are the queries."""
        return not self._found.site.kind.startswith("cross")

    def heads(self) -> Attention:
        """The norm of what each head adds; no head has a part in the stream."""
        norms = norms_of_heads(self._found.weights, self._vectors)
        return norms if self._norm is None else norms / self._norm.spread[:, None]

    def norms(self) -> HeadMean:
        """The norm of what is added over all heads, with the stream on the diagonal if asked."""
        norms = norms_of_sums(self._found.weights, self._vectors)
        if self._stream is not None and self.reads_itself:
            norms.diagonal(dim1=-2, dim2=-1).copy_(self._own().norm(dim=-1))
        return norms if self._norm is None else norms / self._norm.spread

    def mixing_ratio(self) -> BatchScores:
        """How much of each position comes from others."""
        attended = self._found.output - self._found.bias
        return mixing_ratio(self._normed(attended - self._found.own_terms()), self._own())

    def _own(self) -> Tensor:
        own = self._found.own_terms()
        return self._normed(own if self._stream is None else own + self._stream)

    def _normed(self, vectors: Tensor) -> Tensor:
        return vectors if self._norm is None else self._norm.apart_from_spread(vectors)


def shares(norms: HeadMean) -> HeadMean:
    """Each row as shares that sum to one."""
    return norms / norms.sum(dim=-1, keepdim=True).clamp_min(TINY)


def describe(question: Question, ratios: list[tuple[str, list[float]]]) -> list[tuple[str, ...]]:
    """Of each row of the question, the mixing ratio of each layer."""
    rows = [0] * len(question) if question.is_shared else range(len(question))
    return [tuple(f"{name}: mixing ratio {each[row]:.2f}" for name, each in ratios) for row in rows]
