"""Steps of a backward pass by which an activation times the gradient on it is its relevance."""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function as Operation

from attlas.models.relevance.rules import applied


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
