"""Attention flow: attention weights as pipes, and how much could flow from each token.

Abnar and Zuidema, "Quantifying Attention Flow in Transformers", ACL 2020.
"""

from collections.abc import Sequence

import torch
from torch import Tensor

from attlas.errors import UnsupportedModelError, UsageError
from attlas.methods.support.flow import (
    Layer,
    Pipes,
    lay_encoder_decoder,
    lay_stack,
)
from attlas.methods.support.flow_maps import flow_maps
from attlas.methods.support.method import Scored, method
from attlas.methods.support.token_rows import check_share, fuse_heads, read_row, sites_in_turn
from attlas.models.asking.question import Question
from attlas.models.asking.reading import fold_attention
from attlas.models.encoding.inputs import Inputs
from attlas.models.tap.call import Call
from attlas.results import Site


@method(
    family="W",
    signed=False,
    of=None,
    paper="arXiv:2005.00928",
    reading="How much of each token could pass to the position that the model predicts from.",
    needs=("attention",),
    cost="expensive",
    many_targets=True,
    fills=True,
    learns=True,
    passes=1,
    weighs=lambda question, options: 2 + 0.1 * len(question.inputs.tokens[0]),  # finding flows
)
def attention_flow(
    question: Question,
    *,
    residual: float = 0.5,
    fusion: str = "mean",
    full: bool = False,
    processes: int = 1,
) -> Scored:
    """Score each token by the most that could flow from it to where the model predicts from.

    Each attention weight is the width of a pipe. `residual` is the share of every layer that
    bypasses attention, and `fusion` combines the heads: mean, max or min. The flow of every token
    is computed on its own, and the scores are scaled to sum to one. `full` computes the map of all
    positions, which takes as many times longer as there are positions; `processes` is the number of
    processes that share the work. Of the target, only the positions it is read from matter. What
    could flow need not have flowed.
    """
    check_share("residual", residual)
    if processes < 1:
        raise UsageError(f"processes is the number of processes, 1 or more, not {processes}")

    def keep(call: Call) -> tuple[str, Tensor]:
        return call.site.kind, fuse_heads(call.weights.detach(), fusion).cpu().double()

    if question.subject.stages(question.inputs) is not None:
        raise UnsupportedModelError(
            f"{type(question.subject.model).__name__} joins its tokens from stage to stage, and no "
            "flow is defined through tokens that are joined: use attention_rollout"
        )
    folded = fold_attention(question, keep, sites_in_turn(question.subject))
    pipes = lay_pipes(question.inputs, folded.held, residual)
    readout = folded.readout.cpu().double()
    read = readout > 0 if len(pipes) == len(readout) else (readout > 0).any(dim=0, keepdim=True)
    tops = torch.ones_like(read) if full and question.maps else read
    flows = flow_maps(pipes, tops.numpy(), processes)
    mixing = torch.stack([torch.from_numpy(each) for each in flows])
    maps = [(Site("all", 0, 1), mixing[:, None])] if full and question.maps else []
    return Scored(read_row(mixing, readout), maps, shows="flow of attention")


def lay_pipes(inputs: Inputs, layers: Sequence[tuple[str, Tensor]], residual: float) -> list[Pipes]:
    """The network of each input of a batch, from the attention of each layer, lowest first."""
    source = len(inputs.source.positions)
    prefix = None if inputs.prefix is None else len(inputs.prefix.positions)
    networks = []
    for row in range(len(layers[0][1])):
        own: list[Layer] = [(kind, layer[row].numpy()) for kind, layer in layers]
        if any(kind == "cross" for kind, _ in own):
            networks.append(lay_encoder_decoder(own, residual, source, prefix))
        else:
            networks.append(lay_stack([layer for _, layer in own], residual, source))
    return networks
