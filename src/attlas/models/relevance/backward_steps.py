"""Autograd functions with the backward passes of relevance rules.

With `Share`, `Scale` and `LayerNorm`, an activation times its gradient is its relevance. The other
functions carry relevance itself.
"""

from collections.abc import Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function as Operation
from torch.nn import functional

from attlas.models.loading.offloading import as_numbers
from attlas.models.relevance.rules import applied

TINY = 1e-9
BYTES_AT_ONCE = {"cpu": 2**21}  # of half a weight: what a CPU's cache holds


class Share(Operation):
    """Returns a value unchanged, and divides the gradient."""

    @staticmethod
    def forward(ctx: Any, value: Tensor, count: int) -> Tensor:
        """The value itself."""
        ctx.count = count
        return value.clone()  # a view could not be written into

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        """The gradient divided by `count`."""
        return gradients[0] / ctx.count, None


class Scale(Operation):
    """An elementwise function as a factor at this point: f(x) / x."""

    @staticmethod
    def forward(ctx: Any, given: Tensor, result: Tensor) -> Tensor:
        """The result of the function."""
        ctx.save_for_backward(given, result)
        return result.clone()

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Tensor, None]:
        """The gradient times the factor; zero where the input is zero."""
        given, result = ctx.saved_tensors
        factor = torch.where(given == 0, 0.0, result / given)
        return (gradients[0] * factor).to(given.dtype), None


class LayerNorm(Operation):
    """A layer norm whose standard deviation is held constant."""

    @staticmethod
    def forward(
        ctx: Any,
        given: Tensor,
        shape: Sequence[int],
        weight: Tensor | None,
        bias: Tensor | None,
        epsilon: float,
    ) -> Tensor:
        """The unchanged norm."""
        result, _, scale = torch.native_layer_norm(given, shape, weight, bias, epsilon)
        ctx.save_for_backward(scale, weight)
        ctx.axes = tuple(range(-len(shape), 0))
        return result

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> tuple[Any, ...]:
        """Through the weight, the constant deviation and the mean."""
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
    """A layer norm whose standard deviation is constant in the backward pass."""
    return applied(LayerNorm, given, list(normalized_shape), weight, bias, eps)


def is_scaled(value: Any) -> bool:
    """Whether this is the direct output of an elementwise function."""
    return isinstance(value, Tensor) and type(value.grad_fn).__name__ == "ScaleBackward"


def divide(relevance: Tensor, amounts: Tensor) -> Tensor:
    """Divide relevance by amounts, moved away from zero; zero where the amount is zero."""
    away = amounts + torch.where(amounts < 0, -TINY, TINY)
    return torch.where(amounts == 0, 0.0, relevance / away)


class Pass(Operation):
    """Connects a result to its input: relevance passes unchanged."""

    @staticmethod
    def forward(ctx: Any, given: Tensor, result: Tensor) -> Tensor:
        """The result."""
        ctx.dtype = given.dtype
        return result.clone()

    @staticmethod
    def backward(ctx: Any, *relevance: Tensor) -> tuple[Tensor, None]:
        """All relevance."""
        return relevance[0].to(ctx.dtype), None


class FromGradient(Operation):
    """Goes before an operation with its normal gradient: turns that gradient into relevance."""

    @staticmethod
    def forward(ctx: Any, given: Tensor) -> Tensor:
        """The value unchanged."""
        ctx.save_for_backward(given)
        return given.view_as(given)

    @staticmethod
    def backward(ctx: Any, *gradients: Tensor) -> Tensor:
        """The input times the gradient."""
        found: Tensor = ctx.saved_tensors[0] * gradients[0]
        return found


class ToGradient(Operation):
    """Goes behind an operation with its normal gradient: turns relevance into that gradient."""

    @staticmethod
    def forward(ctx: Any, result: Tensor, operands: int) -> Tensor:
        """The value unchanged."""
        ctx.save_for_backward(result)
        ctx.operands = operands
        return result.clone()

    @staticmethod
    def backward(ctx: Any, *relevance: Tensor) -> tuple[Tensor, None]:
        """The relevance divided by the result, shared by the operands."""
        return divide(relevance[0], ctx.saved_tensors[0]) / ctx.operands, None


class PositiveLinear(Operation):
    """A linear layer whose relevance follows its positive contributions (alpha 1, beta 0)."""

    @staticmethod
    def forward(ctx: Any, given: Tensor, weight: Tensor, bias: Tensor | None) -> Tensor:
        """The unchanged layer."""
        ctx.save_for_backward(given, weight)
        return functional.linear(given, weight, bias)

    @staticmethod
    def backward(ctx: Any, *relevance: Tensor) -> tuple[Tensor, None, None]:
        """Through positive weights for positive inputs, and negative ones for negative inputs."""
        given, weight = ctx.saved_tensors
        wide = torch.promote_types(given.dtype, torch.float32)
        found = through_positive(given.to(wide), as_numbers(weight), relevance[0].to(wide))
        return found.to(given.dtype), None, None


def through_positive(given: Tensor, weight: Tensor, relevance: Tensor) -> Tensor:
    """The relevance of what a linear layer was given, by its positive contributions.

    Some outputs at a time: on a CPU, fresh memory for the halves of a whole weight takes longer
    than a short text's products with them.
    """
    above, below = given.clamp(min=0), given.clamp(max=0)
    raised, lowered = torch.zeros_like(given), torch.zeros_like(given)
    most = BYTES_AT_ONCE.get(given.device.type, 2**30)
    step = max(1, most // (given.element_size() * weight.shape[1]))
    for some, arrived in zip(weight.split(step), relevance.split(step, dim=-1), strict=True):
        numbers = some.to(given.dtype)
        raising, lowering = numbers.clamp(min=0), numbers.clamp(max=0)
        total = functional.linear(above, raising).add_(functional.linear(below, lowering))
        shares = arrived / total.add_(TINY)  # the total is never negative
        raised += shares @ raising
        lowered += shares @ lowering
    return above.mul_(raised).add_(below.mul_(lowered))


class SharedSum(Operation):
    """A sum that shares relevance by how much each summand receives, separately in each row."""

    @staticmethod
    def forward(ctx: Any, first: Tensor, second: Tensor, rows: int) -> Tensor:
        """The sum of two tensors of one shape."""
        ctx.save_for_backward(first, second)
        ctx.rows = rows
        return first + second

    @staticmethod
    def backward(ctx: Any, *relevance: Tensor) -> tuple[Tensor, Tensor, None]:
        """First for each element, then scaled for each summand as a whole."""
        given, kind = ctx.saved_tensors, relevance[0].dtype
        first, second = share_sum(given[0], given[1], relevance[0], ctx.rows)
        return first.to(kind), second.to(kind), None


def share_sum(first: Tensor, second: Tensor, relevance: Tensor, rows: int) -> tuple[Tensor, Tensor]:
    """Divide the relevance of a sum between its two summands.

    If the elements of one summand receive S in total and those of the other T, the first one gets
    the share |S| / (|S| + |T|) of the whole. Its elements are scaled by that share over S.
    """
    wide = torch.promote_types(relevance.dtype, torch.float32)
    whole = relevance.to(wide)
    both = torch.stack([first.to(wide), second.to(wide)])
    received = (both * divide(whole, both[0] + both[1])).reshape(2, rows, -1)
    sums = received.sum(dim=2)
    scale = divide(whole.reshape(rows, -1).sum(dim=1), sums.abs().sum(dim=0))
    scaled = (received * (sums.sign() * scale)[..., None]).reshape(both.shape)
    return scaled[0], scaled[1]
