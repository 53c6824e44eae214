"""Readout: from which positions a prediction comes, found by gradient and by no table of models."""

from typing import TYPE_CHECKING, Any

import torch
from torch import Tensor

from attlas.errors import ModelError
from attlas.models.sites import find_block
from attlas.shapes import QueryWeights

if TYPE_CHECKING:
    from attlas.models.question import Question

NEGLIGIBLE = 1e-6  # of the largest gradient norm in the row


def find_readout(question: "Question") -> QueryWeights:
    """The share of each position of the last block in the target, by the gradient's norm.

    One position for a [CLS] or last-token head, several for a pooled one.
    """
    kept: list[Tensor] = []
    model = question.subject.model
    block = find_block(model, question.subject.places[-1][1])

    def keep(_module: Any, _arguments: Any, output: Any) -> Any:
        stream = output if isinstance(output, Tensor) else output[0]
        fresh = stream.detach().requires_grad_()
        kept.append(fresh)
        return fresh if isinstance(output, Tensor) else (fresh, *output[1:])

    with torch.enable_grad(), question.subject.tap():
        handle = block.register_forward_hook(keep)
        try:
            total = question.score_with_graph("logit").sum()
            (gradient,) = torch.autograd.grad(total, kept[-1:])
        finally:
            handle.remove()
    if not gradient.any():
        raise ModelError(f"the prediction of {question.subject.name} does not depend on its layers")
    return shares(gradient)


def shares(gradient: Tensor) -> QueryWeights:
    """Gradient norms as weights that sum to one, what is negligible set to zero."""
    norms = gradient.float().norm(dim=-1)
    norms = norms.where(norms > NEGLIGIBLE * norms.amax(dim=-1, keepdim=True), norms.new_zeros(()))
    weights: Tensor = norms / norms.sum(dim=-1, keepdim=True)
    return weights
