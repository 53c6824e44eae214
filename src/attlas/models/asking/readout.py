"""Readout: the positions that a prediction comes from, found by gradient for any model."""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor

from attlas.errors import ModelError, UnsupportedModelError
from attlas.models.asking.open_model import OpenModel
from attlas.models.facts.hooks import Hooks, hooking
from attlas.models.facts.sites import find_block
from attlas.restoring import placing
from attlas.shapes import QueryWeights

NEGLIGIBLE = 1e-6  # of the largest gradient norm in the row


@contextmanager
def last_stream(subject: OpenModel) -> Iterator[list[Tensor]]:
    """The output of the last block, filled in when the model runs and part of the autograd graph.

    A model that reads a text and a picture has two last blocks. If nothing below needs a gradient,
    the graph starts here and costs next to nothing. The batch is always the first axis, the
    tokens are the second.
    """
    blocks = subject.last_blocks
    axes = subject.stream_axes
    kept = [torch.empty(0)] * len(blocks)

    def keep(number: int, _module: Any, _arguments: Any, output: Any) -> Any:
        outputs = [output] if isinstance(output, Tensor) else list(output)
        place = blocks[:number].count(blocks[number])  # a shared block returns the text first
        stream = outputs[place].movedim(axes, (0, 1))
        kept[number] = stream if stream.requires_grad else stream.detach().requires_grad_()
        outputs[place] = kept[number].movedim((0, 1), axes)
        if isinstance(output, Tensor):
            return outputs[0]
        return output._make(outputs) if hasattr(output, "_make") else tuple(outputs)

    with hooking() as hooks:
        for number, block in enumerate(blocks):
            hooks.after(block, partial(keep, number))
        yield kept


@contextmanager
def blocks_beside_graph(subject: OpenModel) -> Iterator[None]:
    """Keep no graph from the first block to the last: torch need not look for one at each step.

    It is entered before `last_stream`, where the graph starts.
    """
    before: list[bool] = []

    def stop(*_: Any) -> None:
        before.append(torch.is_grad_enabled())
        torch.set_grad_enabled(False)

    def go_on(*_: Any) -> None:
        if before:
            torch.set_grad_enabled(before.pop())

    with placing() as placed:
        placed.note(go_on)  # where the pass ends within the blocks
        hooks = Hooks(placed)
        hooks.before(find_block(subject.model, subject.places[0][1]), stop)
        for block in subject.last_blocks:
            hooks.after(block, go_on)
        yield


def stream_gradients(
    subject: OpenModel, total: Tensor, stream: Sequence[Tensor]
) -> Sequence[Tensor]:
    """The gradient of a sum of scores on the last stream; raises if the model lets none through."""
    if not total.requires_grad:
        raise UnsupportedModelError(
            f"{type(subject.model).__name__} lets no gradient through its last layers, so the "
            "positions that its prediction is read from cannot be found; leave_one_out, "
            "kernel_shap and lime need no gradient"
        )
    return torch.autograd.grad(total, stream, materialize_grads=True)


def readout_weights(subject: OpenModel, *gradients: Tensor | None) -> QueryWeights:
    """The share of each position of the last block in the target, by the norm of its gradient.

    A [CLS] or last-token head has one position, a pooled head several. If the model reads a text
    and a picture, the positions of the picture follow those of the text. Each of the two sums to
    one, or to zero if the target is not read from it.
    """
    found = [gradient for gradient in gradients if gradient is not None]
    if subject.sites[-1].kind == "pooling":  # it has a single row
        return torch.ones(len(found[0]), 1, device=found[0].device)
    if not any(gradient.any() for gradient in found):
        raise ModelError(f"the prediction of {subject.name} does not depend on its layers")
    return torch.cat([shares(gradient) for gradient in found], dim=1)


def shares(gradient: Tensor) -> QueryWeights:
    """Gradient norms as weights that sum to one; negligible norms become zero."""
    norms = gradient.float().flatten(2).norm(dim=-1)  # of all streams, where a model has several
    norms = norms.where(norms > NEGLIGIBLE * norms.amax(dim=-1, keepdim=True), norms.new_zeros(()))
    total = norms.sum(dim=-1, keepdim=True)
    weights: Tensor = norms / total.where(total > 0, 1.0)
    return weights
