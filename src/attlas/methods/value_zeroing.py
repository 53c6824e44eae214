"""Value zeroing: what a token's value does, by leaving it out of one layer at a time.

Mohebbi et al., "Quantifying Context Mixing in Transformers", EACL 2023.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from attlas.errors import UnsupportedModelError, UsageError
from attlas.methods.attention_rollout import TINY, begin, fold_copy
from attlas.methods.support.method import Scored, method
from attlas.methods.support.token_rows import mixing_sites, read_row
from attlas.models.asking.question import Question
from attlas.models.branching.block_runs import BlockRun, read_blocks
from attlas.results import Site
from attlas.shapes import HeadMean


@method(
    family="V",
    signed=False,
    of=None,
    paper="Mohebbi et al. 2023, arXiv:2301.12971",
    maps="all",
    reading="How much of where the model predicts from rests on each token's value, over layers.",
    needs=("attention", "branches"),
    cost="expensive",
    many_targets=True,
)
def value_zeroing(question: Question, *, layer: int | None = None) -> Scored:
    """Score each token by how far the states above move when its value is nothing in a layer.

    In each layer, for each token, the block is run again on the input it had, with that token's
    value vectors set to zero; the cosine distances of its outputs to the real ones, as shares of
    their sum, say how the layer mixes. They are multiplied up over all layers; `layer`, from the
    top if negative, takes those of one layer alone. Scores sum to one. Nothing but the value is
    taken away: the other weights are not told that the token is gone.
    """
    names = {site.name for site in mixing_sites(question.subject.sites)}
    folded = read_blocks(question)
    runs = [run for run in folded.held if names.intersection(run.call.sites)]
    runs = runs if layer is None else [choose(runs, layer)]
    found = compose([layer_maps(run) for run in runs])
    if crosses(runs) and question.inputs.prefix is None:
        found = fold_copy(found)
    maps = [(Site("all", 0, 1), found[:, None])] if question.maps else []
    return Scored(read_row(found, folded.readout), maps)


def choose(runs: Sequence[BlockRun], layer: int) -> BlockRun:
    """One layer of the stack that is read out, counted from the top if negative."""
    layers = [run for run in runs if run.call.stack == runs[-1].call.stack]
    if not -len(layers) <= layer < len(layers):
        raise UsageError(f"unknown layer {layer}: this model has layers 0 to {len(layers) - 1}")
    return layers[layer]


def crosses(runs: Sequence[BlockRun]) -> bool:
    """Whether the stack that is read out reads another."""
    return any(kind_of(site) == "cross" for site in runs[-1].call.sites)


def kind_of(site: str) -> str:
    """The kind that a site's name begins with."""
    return site.split(".")[0]


def layer_maps(run: BlockRun) -> tuple[Tensor, Tensor | None]:
    """How a layer mixes its own positions, and those that it reads across, if it does.

    They are `[batch, query, key]`; of each row both together are shares that sum to one.
    """
    distances = {kind_of(site): run.without_each_value(site) for site in run.call.sites}
    cross = distances.pop("cross", None)
    if len(run.call.sites) > len(distances) + (cross is not None) or len(distances) > 1:
        raise UnsupportedModelError(
            f"a block has several attentions over one stream ({', '.join(run.call.sites)}), and "
            "there is no one map of what it mixes"
        )
    queries = run.stream.shape[1]
    own = next(iter(distances.values()), run.stream.new_zeros(len(run.stream), queries, queries))
    if own.shape[-1] != queries:
        raise UnsupportedModelError(
            f"attention of {queries} positions over {own.shape[-1]} cannot be rolled out: a layer "
            "must keep its positions"
        )
    return shares(own, cross)


def shares(own: Tensor, cross: Tensor | None) -> tuple[Tensor, Tensor | None]:
    """Both divided by what each row of them sums to together."""
    total = own.sum(dim=-1, keepdim=True)
    total = total if cross is None else total + cross.sum(dim=-1, keepdim=True)
    total = total.clamp_min(TINY)
    return own / total, None if cross is None else cross / total


def compose(layers: Sequence[tuple[Tensor, Tensor | None]]) -> HeadMean:
    """Multiply layers up, lowest first; those that read across find the stack below rolled out.

    `[batch, position, token]`: the tokens that are read across stand before the stack's own.
    """
    first: Tensor | None = None
    second: Tensor | None = None
    for own, cross in layers:
        if cross is None:
            below = first if second is None else second
            mixed = own if below is None else own @ below
            first, second = (mixed, None) if second is None else (first, mixed)
        else:
            source = torch.eye(cross.shape[-1]).to(cross)[None] if first is None else first
            below = begin(source.expand(len(own), -1, -1), own) if second is None else second
            second = own @ below + torch.nn.functional.pad(cross @ source, (0, own.shape[-1]))
    found = first if second is None else second
    assert found is not None
    return found.float()
