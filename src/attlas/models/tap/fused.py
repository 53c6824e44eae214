"""Fused attention for what is only passed through: the same mathematics, no weights spelled out.

Whether a module's attention is what the fused function computes (no sinks, no soft cap, nothing of
its own) is not read off a table of models: the first time a module is met, both are computed and
compared.
"""

from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from transformers import AttentionInterface

_HANDED_ON = ("dropout", "scaling", "position_bias")
# What a module may hand its attention function that means nothing to it, or is in the mask already.
_HARMLESS = {
    *("deterministic", "is_causal", "output_attentions", "output_hidden_states"),
    *("output_router_logits", "position_ids", "cache_position", "return_dict"),
    *("sliding_window", "use_cache"),
}
_TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-4}
_fusible: WeakKeyDictionary[nn.Module, bool] = WeakKeyDictionary()


def run_fused(
    module: nn.Module, streams: tuple[Tensor, Tensor, Tensor], mask: Any, given: Mapping[str, Any]
) -> Tensor | None:
    """Attention without its weights, `[batch, query, head, width]`; None where it cannot be had.

    `streams` are query, key and value. The mask is the eager one's and says all there is to see.
    """
    asked = {name for name, value in given.items() if value is not None}
    # A soft cap shows only on large scores: what is not known is not left to the comparison.
    if _fusible.get(module) is False or not asked <= _HARMLESS.union(_HANDED_ON):
        return None
    fused = AttentionInterface()["sdpa"]
    options = {name: given[name] for name in _HANDED_ON if name in given}
    try:
        output: Tensor = fused(module, *streams, mask, is_causal=False, **options)[0]
    except (ValueError, RuntimeError):
        _fusible[module] = False
        return None
    return output


def is_proven(module: nn.Module) -> bool:
    """Whether the fused function has been held against the module's own."""
    return module in _fusible


def prove(module: nn.Module, fused: Tensor | None, eager: Tensor) -> None:
    """Hold the fused output against the module's own, and remember whether they agree."""
    tolerance = _TOLERANCE.get(eager.dtype, 2e-2)
    own = eager.detach()
    scale = float(own.abs().max()) or 1.0
    _fusible[module] = (
        fused is not None
        and fused.shape == own.shape
        and float((fused.detach() - own).abs().max()) <= tolerance * scale
    )
