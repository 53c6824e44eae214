"""The second road: attention that does not go through the interface, met at its softmax.

Some modelling files write their attention out, softmax and all. While a tap is open, a torch
function mode watches for a softmax inside an attention module's forward: its result is the
attention, and what is given back in its place is what the module goes on with. A call to the fused
function inside such a module is spelled out first. Softmaxes elsewhere (routers, heads) are no
attention and are left alone.
"""

from collections.abc import Callable, Mapping
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor
from torch.nn import functional
from torch.overrides import TorchFunctionMode

_SOFTMAX = {torch.softmax, functional.softmax, Tensor.softmax}
MASKED = -1e4  # scores below this were masked: models write anything from here to minus infinity


@runtime_checkable
class Watcher(Protocol):
    """What the mode tells of a softmax, and what it asks."""

    def is_inside(self) -> bool:
        """Whether an attention module on this road is being run."""

    def meet_softmax(self, weights: Tensor, visible: Tensor) -> Tensor:
        """The weights to go on with, for those the softmax gave, whatever their shape."""


class SoftmaxWatch(TorchFunctionMode):
    """Hands every softmax inside an attention module to a watcher."""

    def __init__(self, watcher: Watcher) -> None:
        super().__init__()
        self._watcher = watcher

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Let the function run, unless it is a softmax, or fused, inside an attention module."""
        given = dict(kwargs or {})
        if not self._watcher.is_inside():
            return func(*args, **given)
        if func is functional.scaled_dot_product_attention:
            return self._spell_out(*args, **given)
        result = func(*args, **given)
        if func in _SOFTMAX and _is_over_keys(result, args, given):
            return self._watcher.meet_softmax(result, args[0] > MASKED)
        return result

    def _spell_out(
        self,
        query: Tensor,
        key: Tensor,
        value: Tensor,
        attn_mask: Tensor | None = None,
        dropout_p: float = 0.0,
        is_causal: bool = False,
        scale: float | None = None,
        enable_gqa: bool = False,
    ) -> Tensor:
        """Attention by its definition, so that its weights can be met."""
        groups = query.shape[-3] // key.shape[-3] if enable_gqa else 1
        key, value = (each.repeat_interleave(groups, dim=-3) for each in (key, value))
        scaled = query * (query.shape[-1] ** -0.5 if scale is None else scale)
        scores = scaled @ key.transpose(-1, -2)
        if is_causal:
            attn_mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=query.device).tril()
        if attn_mask is not None:
            closed = ~attn_mask if attn_mask.dtype == torch.bool else None
            scores = (
                scores + attn_mask if closed is None else scores.masked_fill(closed, -torch.inf)
            )
        weights = torch.softmax(scores, dim=-1)
        return self._watcher.meet_softmax(weights, scores > MASKED) @ value


def _is_over_keys(result: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    """Whether a softmax is over the last axis, with at least one for the queries before it."""
    axis = kwargs.get("dim", args[1] if len(args) > 1 else None)
    return isinstance(result, Tensor) and result.ndim >= 3 and axis in (-1, result.ndim - 1)
