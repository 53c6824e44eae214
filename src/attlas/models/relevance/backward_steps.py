"""Steps of a backward pass by which an activation times the gradient on it is its relevance."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function as Operation
from torch.nn import functional

from attlas.models.relevance.rules import applied

TINY = 1e-9


class Share(Operation):
    """Passes a value on, and a part of the gradient back."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, parts: int) -> Tensor:
        """The value itself."""
        ctx.parts = parts
        return value.view_as(value)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        """One of the parts."""
        return gradients[0] / ctx.parts, None


class Scale(Operation):
    """An elementwise function as what it is at this point: a factor, f(x) / x."""

    @staticmethod
    def forward(ctx: Any, given: Tensor, result: Tensor) -> Tensor:
        """What the function gave."""
        ctx.save_for_backward(given, result)
        return result.view_as(result)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        """The gradient times the factor; nothing where the input was nothing."""
        given, result = ctx.saved_tensors
        factor = torch.where(given == 0, 0.0, result / given)
        return (gradients[0] * factor).to(given.dtype), None


class LayerNorm(Operation):
    """A layer norm whose deviation is a constant."""

    @staticmethod
    def forward(
        ctx: Any,
        given: Tensor,
        shape: Sequence[int],
        weight: Tensor | None,
        bias: Tensor | None,
        epsilon: float,
    ) -> Tensor:
        """The norm as it is."""
        result, _, scale = torch.native_layer_norm(given, shape, weight, bias, epsilon)
        ctx.save_for_backward(scale, weight)
        ctx.axes = tuple(range(-len(shape), 0))
        return result

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Any, ...]:
        """Through the weight, the constant and the mean."""
        scale, weight = ctx.saved_tensors
        weighed = gradients[0] if weight is None else gradients[0] * weight
        scaled = weighed * scale.to(weighed.dtype)
        return scaled - scaled.mean(dim=ctx.axes, keepdim=True), None, None, None, None


def layer_norm(
    given: Tensor,
    normalized_shape: Sequence[int],
    weight: Tensor | None = None,
    bias: Tensor | None = None,
    eps: float = 1e-5,
    cudnn_enable: bool = True,
) -> Tensor:
    """A layer norm whose deviation is a constant on the way back."""
    return applied(LayerNorm, given, list(normalized_shape), weight, bias, eps)


def is_scaled(value: Any) -> bool:
    """Whether this is right out of an elementwise function."""
    return isinstance(value, Tensor) and type(value.grad_fn).__name__ == "ScaleBackward"


def divide(relevance: Tensor, parts: Tensor) -> Tensor:
    """Relevance for each of the parts; nothing where there is nothing to divide by."""
    away = parts + torch.where(parts < 0, -TINY, TINY)
    return torch.where(parts == 0, 0.0, relevance / away)


class Pass(Operation):
    """Ties a result to what it was made of: relevance passes unchanged."""

    @staticmethod
    def forward(ctx: Any, given: Tensor, result: Tensor) -> Tensor:
        """The result."""
        ctx.dtype = given.dtype
        return result.view_as(result)

    @staticmethod
    def backward(ctx: Any, *relevance: Tensor) -> tuple[Tensor, None]:
        """All of it."""
        return relevance[0].to(ctx.dtype), None


class FromGradient(Operation):
    """Before an operation that is differentiated as it is: its gradient becomes relevance."""

    @staticmethod
    def forward(ctx: Any, given: Tensor) -> Tensor:
        """The same."""
        ctx.save_for_backward(given)
        return given.view_as(given)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        """The input times the gradient."""
        found: Tensor = ctx.saved_tensors[0] * gradients[0]
        return found


class ToGradient(Operation):
    """Behind an operation that is differentiated as it is: relevance becomes its gradient."""

    @staticmethod
    def forward(ctx: Any, result: Tensor, operands: int) -> Tensor:
        """The same."""
        ctx.save_for_backward(result)
        ctx.operands = operands
        return result.view_as(result)

    @staticmethod
    def backward(ctx: Any, *relevance: Tensor) -> tuple[Tensor, None]:
        """The relevance for each part of the result, shared by the operands."""
        return divide(relevance[0], ctx.saved_tensors[0]) / ctx.operands, None


class PositiveLinear(Operation):
    """A linear layer whose relevance goes by what adds to its output (alpha 1, beta 0)."""

    @staticmethod
    def forward(ctx: Any, given: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """The layer as it is."""
        ctx.save_for_backward(given, weight)
        return functional.linear(given, weight, bias)

    @staticmethod
    def backward(ctx: Any, *relevance: Tensor) -> tuple[Tensor, None, None]:
        """By positive inputs through positive weights, and negative through negative."""
        given, weight = ctx.saved_tensors
        wide = torch.promote_types(given.dtype, torch.float32)
        above, below = given.to(wide).clamp(min=0), given.to(wide).clamp(max=0)
        raising, lowering = weight.to(wide).clamp(min=0), weight.to(wide).clamp(max=0)
        total = functional.linear(above, raising) + functional.linear(below, lowering)
        shares = relevance[0].to(wide) / (total + TINY)  # no product of equal signs is below zero
        found = above * (shares @ raising) + below * (shares @ lowering)
        return found.to(given.dtype), None, None


class SharedSum(Operation):
    """A sum whose relevance is shared by how much comes to each summand, in each row by itself."""

    @staticmethod
    def forward(ctx: Any, first: Tensor, second: Tensor, rows: int) -> Tensor:
        """The sum; both are of one shape."""
        ctx.save_for_backward(first, second)
        ctx.rows = rows
        return first + second

    @staticmethod
    def backward(ctx: Any, *relevance: Tensor) -> tuple[Tensor, Tensor, None]:
        """Each element by its parts, then each summand as a whole by what came to it."""
        given, kind = ctx.saved_tensors, relevance[0].dtype
        first, second = share_sum(given[0], given[1], relevance[0], ctx.rows)
        return first.to(kind), second.to(kind), None


def share_sum(first: Tensor, second: Tensor, relevance: Tensor, rows: int) -> tuple[Tensor, Tensor]:
    """The relevance of a sum that comes to each of its summands.

    A summand to which S comes by its parts is to get |S| / (|S| + |T|) of all, T being what comes
    to the other: its parts are scaled by that over S, in which S itself cancels.
    """
    wide = torch.promote_types(relevance.dtype, torch.float32)
    whole = relevance.to(wide)
    both = torch.stack([first.to(wide), second.to(wide)])
    parts = (both * divide(whole, both[0] + both[1])).reshape(2, rows, -1)
    sums = parts.sum(dim=2)
    scale = divide(whole.reshape(rows, -1).sum(dim=1), sums.abs().sum(dim=0))
    scaled = (parts * (sums.sign() * scale)[..., None]).reshape(both.shape)
    return scaled[0], scaled[1]
