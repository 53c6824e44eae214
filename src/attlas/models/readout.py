"""Readout: from which positions a prediction comes, found by gradient and by no table of models."""

from collections.abc import Iterator
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any

from torch import Tensor

from attlas.errors import ModelError
from attlas.models.sites import find_block
from attlas.shapes import QueryWeights

if TYPE_CHECKING:
    from attlas.models.subject import Subject

NEGLIGIBLE = 1e-6  # of the largest gradient norm in the row


@contextmanager
def last_stream(subject: "Subject") -> Iterator[list[Tensor]]:
    """Within the block, the list holds what the last block gave, in the graph of what follows.

    Where nothing below asks for a gradient the graph begins there, and costs next to nothing.
    """
    kept: list[Tensor] = []

    def keep(_module: Any, _arguments: Any, output: Any) -> Any:
        stream = output if isinstance(output, Tensor) else output[0]
        kept[:] = [stream if stream.requires_grad else stream.detach().requires_grad_()]
        return kept[0] if isinstance(output, Tensor) else (kept[0], *output[1:])

    handle = find_block(subject.model, subject.places[-1][1]).register_forward_hook(keep)
    try:
        yield kept
    finally:
        handle.remove()


def read_out(subject: "Subject", gradient: Tensor | None) -> QueryWeights:
    """The share of each position of the last block in the target, by the gradient's norm.

    One position for a [CLS] or last-token head, several for a pooled one.
    """
    if gradient is None or not gradient.any():
        raise ModelError(f"the prediction of {subject.name} does not depend on its layers")
    return shares(gradient)


def shares(gradient: Tensor) -> QueryWeights:
    """Gradient norms as weights that sum to one, what is negligible set to zero."""
    norms = gradient.float().norm(dim=-1)
    norms = norms.where(norms > NEGLIGIBLE * norms.amax(dim=-1, keepdim=True), norms.new_zeros(()))
    weights: Tensor = norms / norms.sum(dim=-1, keepdim=True)
    return weights
