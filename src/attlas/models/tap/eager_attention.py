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
    if mask is not None:
        return added_mask(mask, query)
    if not looks_back(module, query, given):
        return None
    return causal_mask(query, torch.arange(query.shape[2], device=query.device), key.shape[2])


def looks_back(module: nn.Module, query: Tensor, given: Mapping[str, Any]) -> bool:
    """Whether `sdpa` lets query i see only the keys up to i in a call that was handed no mask.

    It does unless the call or its module says that it is not causal; eager sees every key. This
    changes what a module computes that is causal by its class but gets no mask, as Kosmos-2's does
    when it reads the picture.
    """
    causal = given.get("is_causal")
    if causal is None:
        causal = getattr(module, "is_causal", True)
    return query.shape[2] > 1 and bool(causal)


def causal_mask(query: Tensor, rows: Tensor, keys: int) -> Tensor:
    """The mask that lets each of these query rows see the keys up to itself."""
    closed = torch.arange(keys, device=query.device) > rows[:, None]
    lowest = torch.finfo(query.dtype).min
    return query.new_zeros(1, 1, len(rows), keys).masked_fill(closed, lowest)


def added_mask(mask: Tensor, query: Tensor) -> Tensor:
    """A mask as eager attention adds it to the scores, if it is one of true and false.

    Eager adds what it is handed: of true and false, one and zero, which hides nothing.
    """
    if mask.dtype != torch.bool:
        return mask
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
