"""Attention computed by a modelling file's own eager function, and its values mixed again."""

from typing import Any

import torch
from torch import Tensor, nn

from attlas.errors import UnsupportedModelError
from attlas.models.facts import transformers_internals as internals

_mixing_checked: set[type[nn.Module]] = set()


def run_eager(module: nn.Module, *args: Any, **kwargs: Any) -> tuple[Tensor, Tensor]:
    """Compute attention with the eager function of the modelling file."""
    eager = internals.eager_attention(type(module))
    if eager is None:
        raise UnsupportedModelError(f"{type(module).__name__} has no eager attention function")
    return eager(module, *args, **kwargs)


def mix(weights: Tensor, values: Tensor) -> Tensor:
    """Mix the values by the weights, `[batch, query, head, width]`; grouped heads share values."""
    groups = weights.shape[1] // values.shape[1]
    shared = values if groups == 1 else values.repeat_interleave(groups, dim=1)
    return torch.matmul(weights, shared).transpose(1, 2).contiguous()


def check_mixing(module: nn.Module, weights: Tensor, values: Tensor, output: Tensor) -> None:
    """Check once for each module class that its output is its values mixed by its weights."""
    if type(module) in _mixing_checked:
        return
    mixed = mix(weights, values)
    tolerance = 1e-5 if output.dtype in (torch.float32, torch.float64) else 1e-2
    if mixed.shape != output.shape or not torch.allclose(mixed, output, tolerance, tolerance):
        raise UnsupportedModelError(
            f"{type(module).__name__} can be read but not edited: its output is not its values "
            "mixed by its attention weights"
        )
    _mixing_checked.add(type(module))
