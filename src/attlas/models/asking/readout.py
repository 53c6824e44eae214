"""Readout: from which positions a prediction comes, found by gradient and by no table of models."""

from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from functools import partial
from typing import Any

import torch
from torch import Tensor

from attlas.errors import ModelError
from attlas.models.asking.open_model import OpenModel
from attlas.shapes import QueryWeights

NEGLIGIBLE = 1e-6  # of the largest gradient norm in the row


@contextmanager
def last_stream(subject: OpenModel) -> Iterator[list[Tensor]]:
    """Within the block, the list holds what the last block gave, in the graph of what follows.

    Of a model that reads a text and a picture it is what the last block of each gave. Where nothing
    below asks for a gradient the graph begins there, and costs next to nothing. Rows come first,
    whatever the model does.
    """
    blocks = subject.last_blocks
    axes = (1, 0) if subject.is_sequence_first else (0, 1)
    kept = [torch.empty(0)] * len(blocks)

    def keep(number: int, _module: Any, _arguments: Any, output: Any) -> Any:
        parts = [output] if isinstance(output, Tensor) else list(output)
        place = blocks[:number].count(blocks[number])  # a block of both gives the text's first
        stream = parts[place].movedim((0, 1), axes)
        kept[number] = stream if stream.requires_grad else stream.detach().requires_grad_()
        parts[place] = kept[number].movedim((0, 1), axes)
        return parts[0] if isinstance(output, Tensor) else tuple(parts)

    with ExitStack() as stack:
        for number, block in enumerate(blocks):
            handle = block.register_forward_hook(partial(keep, number))
            stack.callback(handle.remove)
        yield kept


def readout_weights(subject: OpenModel, *gradients: Tensor | None) -> QueryWeights:
    """The share of each position of the last block in the target, by the gradient's norm.

    One position for a [CLS] or last-token head, several for a pooled one. Where a text and a
    picture are read, those of the picture stand behind those of the text, and each sum to one,
    or to nothing where the target is not read from there.
    """
    found = [gradient for gradient in gradients if gradient is not None]
    if not any(gradient.any() for gradient in found):
        raise ModelError(f"the prediction of {subject.name} does not depend on its layers")
    return torch.cat([shares(gradient) for gradient in found], dim=1)


def shares(gradient: Tensor) -> QueryWeights:
    """Gradient norms as weights that sum to one, what is negligible set to zero."""
    norms = gradient.float().norm(dim=-1)
    norms = norms.where(norms > NEGLIGIBLE * norms.amax(dim=-1, keepdim=True), norms.new_zeros(()))
    total = norms.sum(dim=-1, keepdim=True)
    weights: Tensor = norms / total.where(total > 0, 1.0)
    return weights
