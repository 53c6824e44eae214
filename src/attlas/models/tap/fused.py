"""Fused attention for calls that nobody reads or edits: it is faster and computes no weights.

A module may do more than the fused function (sinks, soft caps). There is no table of such models:
on the first call of a module both versions are computed and compared.
"""

from collections.abc import Mapping
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from transformers import AttentionInterface

_HANDED_ON = ("dropout", "scaling", "position_bias", "is_causal")
# Arguments that do not change the result of attention, or that the mask contains already.
_HARMLESS = {
    *("deterministic", "is_causal", "output_attentions", "output_hidden_states"),
    *("output_router_logits", "position_ids", "cache_position", "return_dict"),
    *("sliding_window", "use_cache"),
}
_KNOWN = frozenset({*_HANDED_ON, *_HARMLESS})
_FUNCTIONS = AttentionInterface()
_TOLERANCE = {torch.float64: 1e-9, torch.float32: 1e-4}
_HALF = 2e-2  # in half precision
_fusible: WeakKeyDictionary[nn.Module, bool] = WeakKeyDictionary()


def run_fused(
    module: nn.Module, streams: tuple[Tensor, Tensor, Tensor], mask: Any, given: Mapping[str, Any]
) -> Tensor | None:
    """The output of fused attention, `[batch, query, head, width]`; None if it does not apply.

    `streams` are query, key and value. The mask is that of eager attention and is complete.
    """
    return _run(module, streams, mask, {**given, "is_causal": False})


def run_fused_as_found(
    module: nn.Module, streams: tuple[Tensor, Tensor, Tensor], mask: Any, given: Mapping[str, Any]
) -> Tensor | None:
    """Like `run_fused`, with a mask for `sdpa`: a call without one may be causal."""
    return _run(module, streams, mask, given)


def _run(
    module: nn.Module, streams: tuple[Tensor, Tensor, Tensor], mask: Any, given: Mapping[str, Any]
) -> Tensor | None:
    # A comparison may miss a soft cap, which changes only large scores: refuse unknown arguments.
    unknown = () if _KNOWN.issuperset(given) else given.keys() - _KNOWN
    if unknown and any(given[name] is not None for name in unknown):
        return None
    if _fusible.get(module) is False:
        return None
    fused = _FUNCTIONS["sdpa"]
    options = {name: given[name] for name in _HANDED_ON if name in given}
    try:
        output: Tensor = fused(module, *streams, mask, **options)[0]
    except (ValueError, RuntimeError):
        _fusible[module] = False
        return None
    return output


def multiplies_in_tf32(result: Tensor) -> bool:
    """Whether this was computed with matrix products of as few digits as half precision has."""
    is_single = result.is_cuda and result.dtype == torch.float32
    return is_single and torch.get_float32_matmul_precision() != "highest"


def is_proven(module: nn.Module) -> bool:
    """Whether fused and eager attention of this module have been compared."""
    return module in _fusible


def is_fusible(module: nn.Module) -> bool:
    """Whether fused and eager attention of this module were found to agree."""
    return _fusible.get(module) is True


def prove(module: nn.Module, fused: Tensor | None, eager: Tensor) -> None:
    """Compare the fused with the eager output, and remember whether they agree."""
    tolerance = _HALF if multiplies_in_tf32(eager) else _TOLERANCE.get(eager.dtype, _HALF)
    own = eager.detach()
    scale = float(own.abs().max()) or 1.0
    _fusible[module] = (
        fused is not None
        and fused.shape == own.shape
        and float((fused.detach() - own).abs().max()) <= tolerance * scale
    )
