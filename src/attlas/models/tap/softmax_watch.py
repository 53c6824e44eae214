"""The second road to attention: catch the softmax of modules that do not use the interface.

Some modelling files compute attention themselves. While a tap is open, a torch function mode
watches for a softmax inside the forward of an attention module. The result of that softmax is the
attention, and the module continues with what the tap returns in its place. A call to fused
attention inside such a module is computed step by step instead. Softmaxes elsewhere (routers,
heads) are left alone. Block-sparse attention takes several softmaxes, whose map is put together.
"""

import inspect
from collections.abc import Callable, Mapping
from types import FunctionType
from typing import Any, Protocol, runtime_checkable

import torch
from torch import Tensor, nn
from torch.nn import functional

from attlas.errors import UnsupportedModelError
from attlas.models.facts.band_layout import lay_out, pick_up
from attlas.models.facts.bands import BANDS
from attlas.models.facts.hooks import OwnMode

_SOFTMAX = {torch.softmax, functional.softmax, Tensor.softmax}
_MIXING = {torch.matmul, Tensor.matmul, Tensor.__matmul__, torch.bmm, Tensor.bmm, torch.einsum}
_HIDDEN = -5e3  # lower scores are masked: these families use -10,000 and less
MASKED = -1e4  # lower scores are masked: models use anything from here to minus infinity


class Pieces:
    """The softmaxes of one call to a block-sparse attention module.

    The module is run once to collect them. When it then runs for the tap, each softmax is left as
    it is, or takes its weights from the map that the tap returned.
    """

    def __init__(self, module: nn.Module, args: tuple[Any, ...], given: Mapping[str, Any]) -> None:
        bound = inspect.signature(module.forward).bind(*args, **given)
        bound.apply_defaults()
        self._name = type(module).__name__
        self._bands = BANDS[self._name](module, bound.arguments)
        self._found: list[Tensor] = []
        self._visible: list[Tensor] = []
        self._used: Tensor | None = None
        self._number = 0
        self.collecting = True

    def meet(self, piece: Tensor, scores: Tensor) -> Tensor:
        """One softmax of the module: collect it, or return what is to be used in its place."""
        if self.collecting:
            self._found.append(piece)
            self._visible.append((scores > _HIDDEN).to(torch.uint8))
            return piece
        number, self._number = self._number, (self._number + 1) % len(self._found)
        if self._used is None:
            return piece
        return pick_up(self._used, piece, number, self._bands).to(piece.dtype)

    def finish(self) -> tuple[Tensor, Tensor]:
        """The map of all softmaxes, and which keys each query may see."""
        self.collecting = False
        if len(self._found) != len(self._bands.each):
            raise UnsupportedModelError(
                f"{self._name} cannot be opened: it took {len(self._found)} softmaxes, expected "
                f"{len(self._bands.each)}"
            )
        weights = lay_out(self._found, self._bands)
        return weights, lay_out(self._visible, self._bands) > 0

    def use(self, weights: Tensor) -> None:
        """Take the weights of this map from now on; none may lie outside the windows."""
        inside = lay_out([torch.ones_like(each) for each in self._visible], self._bands) > 0
        if weights.detach().masked_select(~inside).any():
            raise UnsupportedModelError(
                f"{self._name} attends within windows: an edit cannot put weight outside them"
            )
        self._used = weights


@runtime_checkable
class Watcher(Protocol):
    """The part of a tap that the watch talks to."""

    def is_inside(self) -> bool:
        """Whether an attention module on this road is running."""

    def meet_softmax(self, weights: Tensor, visible: Tensor) -> Tensor:
        """Return the weights to use in place of those that the softmax computed, of any shape."""

    def meet_piece(self, piece: Tensor, scores: Tensor) -> Tensor | None:
        """The weights to use for one of a module's softmaxes; None where it takes only one."""

    def pools(self) -> bool:
        """Whether the attention that is running pools its tokens: one row, perhaps not written."""

    def unmixed(self) -> Tensor | None:
        """The weights of an attention whose values are still to be found; None if there is none."""

    def meet_values(self, values: Tensor) -> None:
        """The values that these weights mix, `[batch, head, key, width]`."""


class SoftmaxWatch(OwnMode):
    """Reports every softmax inside an attention module to a watcher."""

    def __init__(self, watcher: Watcher) -> None:
        super().__init__()
        self._watcher = watcher
        self._last: tuple[Tensor, Tensor] | None = None  # the last weights, and what replaced them

    def run(self, func: Callable[..., Any], args: tuple[Any, ...], given: dict[str, Any]) -> Any:
        """Run the function; watch it if it is a softmax or fused attention in such a module."""
        if not self._watcher.is_inside():
            return func(*args, **given)
        if func is functional.multi_head_attention_forward:
            return self._multi_head(*args, **given)
        if func is functional.scaled_dot_product_attention:
            return self._fused(*args, **given)
        if func in _SOFTMAX:
            return self._softmax(func, *args, **given)
        if func is torch.exp:  # Reformer writes out its softmax: of scores less their logsumexp
            return self._exponential(*args, **given)
        if func in _MIXING:
            self._look_for_values(args)
        return func(*args, **given)

    def _look_for_values(self, args: tuple[Any, ...]) -> None:
        weights = self._watcher.unmixed()
        values = None if weights is None else _mixed_values(weights.detach(), args)
        if values is not None:
            self._watcher.meet_values(values)

    def _softmax(self, func: Callable[..., Any], *args: Any, **kwargs: Any) -> Any:
        result = func(*args, **kwargs)
        if self._watcher.pools():
            axis = _axis(result, args, kwargs)
            used = self._meet(_as_one_row(result, axis), _as_one_row(args[0] > MASKED, axis))
            return used.reshape(result.movedim(axis, -1).shape).movedim(-1, axis)
        if not _is_over_keys(result, args, kwargs):
            return result
        piece = self._watcher.meet_piece(result, args[0])
        if piece is not None:
            return piece
        weights = _windows_first(result)
        used = self._meet(weights, _windows_first(args[0] > MASKED))
        return result if used is result else _windows_back(used, result)

    def _exponential(self, *args: Any, **kwargs: Any) -> Any:
        result = torch.exp(*args, **kwargs)
        piece = self._watcher.meet_piece(result, args[0])
        return result if piece is None else piece

    def _meet(self, weights: Tensor, visible: Tensor) -> Tensor:
        """The weights to use; a module that computes the same softmax twice gets the same ones."""
        try:
            used = self._watcher.meet_softmax(weights, visible)
        except UnsupportedModelError:
            if self._last is None or not torch.equal(self._last[0], weights):
                raise
            return self._last[1]
        self._last = (weights.detach(), used)
        return used

    def _multi_head(self, *args: Any, **kwargs: Any) -> Any:
        """Run torch's multi-head attention with its inner softmax watched."""
        watched = {
            "has_torch_function": lambda _: False,
            "softmax": lambda *a, **k: self._softmax(functional.softmax, *a, **k),
            "scaled_dot_product_attention": self._fused,
        }
        own: Any = functional.multi_head_attention_forward
        copy = FunctionType(own.__code__, {**own.__globals__, **watched}, argdefs=own.__defaults__)
        return copy(*args, **kwargs)

    def _fused(self, *args: Any, **kwargs: Any) -> Tensor:
        """Run fused attention; mix the values again if the weights change or need a gradient."""
        scores, weights, values = _spell_out(*args, **kwargs)
        used = self._meet(weights, scores > MASKED)
        self._look_for_values((used, values))
        if used is weights and not weights.requires_grad:
            return functional.scaled_dot_product_attention(*args, **kwargs)
        return used @ values


def _spell_out(
    query: Tensor,
    key: Tensor,
    value: Tensor,
    attn_mask: Tensor | None = None,
    dropout_p: float = 0.0,
    is_causal: bool = False,
    scale: float | None = None,
    enable_gqa: bool = False,
) -> tuple[Tensor, Tensor, Tensor]:
    """Attention by its definition: the scores, the weights, and the values of each head."""
    groups = query.shape[-3] // key.shape[-3] if enable_gqa else 1
    key, value = (each.repeat_interleave(groups, dim=-3) for each in (key, value))
    scaled = query * (query.shape[-1] ** -0.5 if scale is None else scale)
    scores = scaled @ key.transpose(-1, -2)
    if is_causal:
        attn_mask = torch.ones(scores.shape[-2:], dtype=torch.bool, device=query.device).tril()
    if attn_mask is not None:
        closed = ~attn_mask if attn_mask.dtype == torch.bool else None
        scores = scores + attn_mask if closed is None else scores.masked_fill(closed, -torch.inf)
    return scores, torch.softmax(scores, dim=-1), value


def _mixed_values(weights: Tensor, args: tuple[Any, ...]) -> Tensor | None:
    """The values `[batch, head, key, width]` that a product mixes by these weights, if it does."""
    first, second = _by_heads(args)
    if first is None or second is None or first.numel() != weights.numel():
        return None
    if first.shape[-2:] != weights.shape[-2:] or second.shape[-2] != weights.shape[-1]:
        return None
    near = torch.allclose(first.detach().reshape(weights.shape).to(weights), weights, atol=1e-3)
    return second.reshape(len(weights), -1, *second.shape[-2:]) if near else None


def _by_heads(args: tuple[Any, ...]) -> tuple[Tensor | None, Tensor | None]:
    """The factors of a product with its rows, and the sum over them, in their last two axes."""
    if isinstance(args[0], str):
        args = _transposed(args[0].replace(" ", ""), *args[1:])
    if len(args) != 2 or not all(isinstance(each, Tensor) and each.ndim > 2 for each in args):
        return None, None
    first, second = map(_windows_first, args)
    return first, second


def _transposed(equation: str, *factors: Any) -> tuple[Any, ...]:
    """The factors of `torch.einsum`, the second laid out as the first is; none if they do not fit.

    The first is `[batch, head, query, key]`, in whatever letters.
    """
    names = equation.split("->")[0].split(",")
    if len(names) != 2 or len(factors) != 2 or len(names[0]) != 4 or len(names[1]) != 4:
        return ()
    batch, head, query, key = list(names[0])
    width = set(names[1]) - set(names[0])
    if query in names[1] or len(width) != 1:
        return ()
    return factors[0], torch.einsum(f"{names[1]}->{batch}{head}{key}{width.pop()}", factors[1])


def _as_one_row(each: Tensor, axis: int) -> Tensor:
    """The weights of one row a head as `[batch, head, 1, key]`; the keys are along this axis."""
    return each.movedim(axis, -1).reshape(len(each), -1, 1, each.shape[axis])


def _windows_first(each: Tensor) -> Tensor:
    """Move the windows of `[batch, head, window, query, key]` into the batch, if there are any."""
    return each.transpose(1, 2).flatten(0, 1) if each.ndim == 5 else each


def _windows_back(used: Tensor, like: Tensor) -> Tensor:
    """Undo `_windows_first`: the weights in the shape that the module computed."""
    if like.ndim != 5:
        return used
    apart: Tensor = used.unflatten(0, (like.shape[0], like.shape[2]))
    return apart.transpose(1, 2)


def _is_over_keys(result: Any, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> bool:
    """Whether a softmax is over the last axis of a tensor with at least three."""
    axis = kwargs.get("dim", args[1] if len(args) > 1 else None)
    return isinstance(result, Tensor) and result.ndim >= 3 and axis in (-1, result.ndim - 1)


def _axis(result: Tensor, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> int:
    """The axis that a softmax is over, counted from the end."""
    axis = kwargs.get("dim", args[1] if len(args) > 1 else -1)
    return int(axis) if axis < 0 else int(axis) - result.ndim
