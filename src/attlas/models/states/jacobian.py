"""Jacobians: how a hidden state moves with the vectors that the tokens enter as.

The model runs on copies of one input. A backward pass gives the row of the Jacobian for another
direction of the hidden state in each copy, and the same copies serve pass after pass.
"""

from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from typing import Any

import torch
from torch import Tensor

from attlas.errors import UnsupportedModelError, UsageError
from attlas.models.asking.memory import in_fitting_batches, rows_of
from attlas.models.asking.open_model import OpenModel
from attlas.models.asking.question import Question
from attlas.models.asking.scores import run_logits
from attlas.models.facts.evaluation_mode import evaluation_mode
from attlas.models.facts.sites import find_block
from attlas.models.states.embeddings import entering, over_tokens
from attlas.shapes import Directions, QueryWeights, TokenSums


def squared_gains(
    question: Question, readout: QueryWeights, layer: int, directions: Directions
) -> TokenSums:
    """The squared length of what each token's vector does to a state, summed over directions.

    The question has one row; the state is that after a layer, its positions weighed by `readout`.
    """

    def sum_over(numbers: Sequence[int]) -> TokenSums:
        return _sum_over(question, readout, layer, directions[list(numbers)])

    too_large = f"{len(question.inputs.tokens[0])} tokens do not fit; give a shorter text"
    parts = in_fitting_batches(range(len(directions)), sum_over, too_large)
    return torch.stack(list(parts)).sum(dim=0)


def width_of(question: Question, layer: int) -> int:
    """How many features the states after a layer have."""
    with (
        torch.no_grad(),
        evaluation_mode(question.subject.model),
        streams(question.subject) as found,
    ):
        run_logits(question.rows([0]))
    return int(_chosen(found, layer).shape[-1])


def _sum_over(
    question: Question, readout: QueryWeights, layer: int, directions: Directions
) -> TokenSums:
    length = len(question.inputs.tokens[0])
    copies = min(len(directions), rows_of(question.subject.device, length))
    several = question.rows([0] * copies)
    with (
        torch.enable_grad(),
        evaluation_mode(question.subject.model),
        entering(question.subject, several.inputs) as entrance,
        streams(question.subject) as found,
    ):
        run_logits(several)
        state = _state(found, layer, readout)
        total = state.new_zeros(length, dtype=torch.float32)
        for part in directions.to(state).split(copies):
            along = (state[: len(part)] * part).sum()
            gradients = torch.autograd.grad(
                along, entrance.leaves, retain_graph=True, allow_unused=True
            )
            squares = [
                (each.start, each.gradient.float().square().sum(dim=-1))
                for each in entrance.entered(gradients)
            ]
            total += over_tokens(question.inputs, squares).sum(dim=0)
    return total


@contextmanager
def streams(subject: OpenModel) -> Iterator[list[Tensor]]:
    """Within the block, the list holds what each layer of the stack that is read out gave."""
    kept: list[Tensor] = []

    def keep(_module: Any, _arguments: Any, output: Any) -> None:
        kept.append(output if isinstance(output, Tensor) else output[0])

    kind = subject.sites[-1].kind
    paths = [path for site, path in subject.places if site.kind == kind]
    blocks = {id(block): block for block in (find_block(subject.model, path) for path in paths)}
    with ExitStack() as stack:
        for block in blocks.values():
            stack.callback(block.register_forward_hook(keep).remove)
        yield kept


def _state(layers: Sequence[Tensor], layer: int, readout: QueryWeights) -> Tensor:
    """The state after a layer at the positions that are read, `[copy, feature]`."""
    stream = _chosen(layers, layer)
    if stream.shape[1] != readout.shape[1]:
        raise UnsupportedModelError(
            f"layer {layer} has {stream.shape[1]} positions, but the prediction is read from "
            f"{readout.shape[1]}: which of them it comes from cannot be told"
        )
    return torch.einsum("bqf,q->bf", stream, readout[0].to(stream))


def _chosen(layers: Sequence[Tensor], layer: int) -> Tensor:
    if not -len(layers) <= layer < len(layers):
        raise UsageError(f"unknown layer {layer}: this model has layers 0 to {len(layers) - 1}")
    return layers[layer]
