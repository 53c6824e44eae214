"""Value zeroing: the effect of a token's value, by setting it to zero in one layer at a time.

Mohebbi et al., "Quantifying Context Mixing in Transformers", EACL 2023.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from attlas.errors import UnsupportedModelError, UsageError
from attlas.methods.attention_rollout import TINY, begin, fold_copy
from attlas.methods.support.method import Scored, method
from attlas.methods.support.token_rows import check_followed, follow, mixing_sites, read_row
from attlas.models.asking.question import Question
from attlas.models.branching.block_runs import BlockRun, read_blocks
from attlas.models.tap.on_patches import mean_on_patches
from attlas.results import Site
from attlas.shapes import HeadMean


@method(
    family="V",
    signed=False,
    of=None,
    paper="Mohebbi et al. 2023, arXiv:2301.12971",
    maps="all",
    reading="How much the state that the model predicts from depends on each token's values.",
    needs=("attention", "branches"),
    cost="expensive",
    many_targets=True,
    passes=2,
    weighs=lambda question, options: 0.9 * len(question.inputs.tokens[0]),  # copies of blocks
)
def value_zeroing(question: Question, *, layer: int | None = None) -> Scored:
    """Score each token by how far states move when its value is set to zero in a layer.

    In each layer, for each token, the block is run again on its real input with that token's value
    vectors set to zero. The cosine distances between its outputs and the real ones, scaled to sum
    to one, are the map of the layer. The maps of all layers are multiplied; `layer`, which counts
    from the top if negative, takes one layer alone. Scores sum to one. Only the values are removed:
    the attention weights still include the token.
    """
    check_followed(question.subject)
    names = {site.name for site in mixing_sites(question.subject.sites)}
    folded = read_blocks(question)
    runs = [run for run in folded.held if names.intersection(run.call.sites)]
    runs = runs if layer is None else [choose(runs, layer)]
    unmixed = question.subject.picture_argument is not None  # only cross-attention reads it
    across = [run.call.sites[0] for run in runs if {*map(kind_of, run.call.sites)} == {"cross"}]
    if unmixed and across and layer is None:
        raise UnsupportedModelError(
            f"{type(question.subject.model).__name__} has layers that only read the picture "
            f"({', '.join(across)}), and values say nothing of how much of the words such a layer "
            "keeps: use attention_rollout, or one layer (layer=-1)"
        )
    source = len(question.inputs.source.positions) if unmixed else 0
    mixing = compose([layer_maps(run) for run in runs], source)
    if crosses(runs) and question.inputs.prefix is None:
        mixing = fold_copy(mixing)
    maps = [(Site("all", 0, 1), mixing[:, None])] if question.maps else []
    return Scored(read_row(mixing, folded.readout), maps, shows="change without a token's value")


def choose(runs: Sequence[BlockRun], layer: int) -> BlockRun:
    """One layer of the stack that the prediction is read from, from the top if negative."""
    layers = [run for run in runs if run.call.stack == runs[-1].call.stack]
    if not -len(layers) <= layer < len(layers):
        raise UsageError(f"unknown layer {layer}: this model has layers 0 to {len(layers) - 1}")
    return layers[layer]


def crosses(runs: Sequence[BlockRun]) -> bool:
    """Whether the stack that the prediction is read from reads another stack."""
    return any(kind_of(site) == "cross" for site in runs[-1].call.sites)


def kind_of(site: str) -> str:
    """The kind that a site's name begins with."""
    return site.split(".")[0]


def layer_maps(run: BlockRun) -> tuple[Tensor, Tensor | None]:
    """How a layer mixes its own positions and, if it has cross-attention, those of the source.

    Both are `[batch, query, key]`; together, each row sums to one.
    """
    distances = {kind_of(site): run.without_each_value(site) for site in run.call.sites}
    cross = distances.pop("cross", None)
    if len(run.call.sites) > len(distances) + (cross is not None) or len(distances) > 1:
        raise UnsupportedModelError(
            f"a block has several attentions over one stream ({', '.join(run.call.sites)}), so "
            "it has no single map"
        )
    queries = run.stream.shape[1]
    own = next(iter(distances.values()), run.stream.new_zeros(len(run.stream), queries, queries))
    own, cross = shares(own, cross)
    own = mean_on_patches(own, run.question.subject.stages(run.question.inputs))
    if own.shape[-1] != own.shape[-2]:
        raise UnsupportedModelError(
            f"attention of {queries} positions over {own.shape[-1]} cannot be rolled out: a layer "
            "must keep its positions"
        )
    return own, cross


def shares(own: Tensor, cross: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """Both maps, divided by the joint sum of each row."""
    total = own.sum(dim=-1, keepdim=True)
    total = total if cross is None else total + cross.sum(dim=-1, keepdim=True)
    total = total.clamp_min(TINY)
    return own / total, None if cross is None else cross / total


def compose(layers: Sequence[tuple[Tensor, Tensor | None]], unmixed: int = 0) -> HeadMean:
    """The product of all layers, lowest first; cross-attention reads the product of the encoder.

    The result is `[batch, position, token]`: tokens of the source come before the stack's own.
    `unmixed` is the length of a source that is read as it is, without layers of its own.
    """
    first: Tensor | None = None
    second: Tensor | None = None
    if unmixed:
        own = layers[0][0]
        first = torch.eye(unmixed).to(own).expand(len(own), -1, -1)
        second = begin(first, own)
    for own, cross in layers:
        if cross is None:
            below = first if second is None else second
            mixed = own if below is None else follow(own, below)
            first, second = (mixed, None) if second is None else (first, mixed)
        else:
            source = torch.eye(cross.shape[-1]).to(cross)[None] if first is None else first
            below = begin(source.expand(len(own), -1, -1), own) if second is None else second
            taken_in = torch.nn.functional.pad(follow(cross, source), (0, own.shape[-1]))
            second = follow(own, below) + taken_in
    product = first if second is None else second
    assert product is not None
    return product.float()
