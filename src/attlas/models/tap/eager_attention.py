"""Attention computed by a modelling file's own eager function, and its values mixed again."""

from collections.abc import Mapping
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


def mask_of_fused(
    module: nn.Module, query: Tensor, key: Tensor, mask: Tensor | None, given: Mapping[str, Any]
) -> Tensor | None:
    """The mask that makes eager attention compute what `sdpa` computes with the given one."""
    if mask is None:
        return _implied_mask(module, query, key, given)
    return _added_mask(mask, query) if mask.dtype == torch.bool else mask


def _implied_mask(
    module: nn.Module, query: Tensor, key: Tensor, given: Mapping[str, Any]
) -> Tensor | None:
    """The mask of a call that was handed none, as `sdpa` understands it; eager sees every key.

    Unless the call or its module says that it is not causal, `sdpa` lets query i see the keys up to
    i. This changes what a module computes that is causal by its class but gets no mask, as
    Kosmos-2's does when it reads the picture.
    """
    causal = given.get("is_causal")
    if causal is None:
        causal = getattr(module, "is_causal", True)
    queries, keys = query.shape[2], key.shape[2]
    if queries == 1 or not causal:
        return None
    closed = torch.ones(queries, keys, dtype=torch.bool, device=query.device).triu(1)
    lowest = torch.finfo(query.dtype).min
    return query.new_zeros(1, 1, queries, keys).masked_fill(closed, lowest)


def _added_mask(mask: Tensor, query: Tensor) -> Tensor:
    """A mask of true and false as eager attention adds it to the scores, as `sdpa` understands it.

    Eager adds what it is handed: of true and false, one and zero, which hides nothing.
    """
    lowest = torch.finfo(query.dtype).min
    return torch.zeros_like(mask, dtype=query.dtype).masked_fill(~mask, lowest)


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
