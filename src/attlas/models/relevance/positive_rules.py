"""Rules for relevance itself on the way back: those of Chefer, Gur and Wolf, CVPR 2021.

What autograd carries is relevance and no gradient. A sum of what comes back along several ways is
the rule for what is used more than once, and whatever merely moves values needs no rule.
"""

from collections.abc import Callable, Mapping, Sequence
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn
from torch.nn import functional

from attlas.models.relevance import operations
from attlas.models.relevance.backward_steps import (
    FromGradient,
    Pass,
    PositiveLinear,
    SharedSum,
    ToGradient,
)
from attlas.models.relevance.rules import (
    Function,
    RelevanceRules,
    Rule,
    applied,
    flatten,
    is_activation,
    rules_by_function,
)


class PositiveRules(RelevanceRules):
    """The rules by operation, for so many rows of a batch.

    `lost` are the constants that stand beside the vectors of tokens: what comes to them is no
    token's.
    """

    def __init__(self, rows: int) -> None:
        super().__init__()
        self._batch = rows
        self.lost: list[Tensor] = []

    def table(self) -> Mapping[Function, Rule]:
        """Every operation that computes with activations; those that only move them have none."""
        return rules_by_function(
            {
                operations.LINEAR: self.linear,
                operations.MULTIPLY: self.multiply,
                operations.CONTRACT: self.contract,
                operations.ADD_MULTIPLIED: self.add_multiplied,
                operations.DIVIDE: self.divide,
                operations.DIVIDE_INTO: self.constant,
                operations.INVERT: self.constant,
                operations.ADD: self.add,
                operations.SUBTRACT: self.subtract,
                operations.SUBTRACT_FROM: self.elementwise,
                operations.NEGATE: self.elementwise,
                operations.SUM: self.add_up,
                operations.JOIN: self.join,
                operations.SOFTMAX: self.elementwise,
                operations.LAYER_NORM: self.elementwise,
                operations.RMS_NORM: self.elementwise,
                operations.POWER: self.power,
                operations.ELEMENTWISE: self.elementwise,
            }
        )

    def pass_activation(self, given: Tensor, result: Tensor) -> Tensor:
        """Relevance passes unchanged."""
        return applied(Pass, given.expand(result.shape), result)

    def linear(self, func: Function, given: Any, weight: Any, bias: Tensor | None = None) -> Any:
        """What adds to the output; a weight that is an activation makes it a product."""
        if is_activation(weight):
            product = self.contract(torch.matmul, given, weight.mT)
            return product if bias is None else self.add(torch.add, product, bias)
        return applied(PositiveLinear, given, weight, bias)

    def contract(self, func: Function, *args: Any, **kwargs: Any) -> Any:
        """A product of activations is shared by its operands; by a weight it is a layer."""
        operands = flatten(args)
        active = sum(map(is_activation, operands))
        if active > 1 or not any(map(_is_weight, operands)):
            return self.share(func, active, *args, **kwargs)
        halves = [func(*_each(partial(_half, sign), args), **kwargs) for sign in (_above, _below)]
        result = func(*_each(_plain, args), **kwargs)
        return applied(Pass, applied(ToGradient, halves[0] + halves[1], 1), result)

    def share(self, func: Function, operands: int, *args: Any, **kwargs: Any) -> Any:
        """By each operand's part in the result, shared equally by so many operands."""
        given = _each(_from_gradient, args)
        return applied(ToGradient, func(*given, **kwargs), operands)

    def add_up(self, func: Function, *args: Any, **kwargs: Any) -> Any:
        """A sum over places goes to each by its part."""
        return self.share(func, 1, *args, **kwargs)

    def multiply(self, func: Function, first: Any, second: Any, **kwargs: Any) -> Any:
        """Two activations share a product; a constant has no part in it."""
        if is_activation(first) and is_activation(second):
            return self.share(func, 2, first, second, **kwargs)
        return self._one(func, first, second, **kwargs)

    def _one(self, func: Function, first: Any, second: Any, **kwargs: Any) -> Any:
        """All relevance to the one of the two that is an activation."""
        active = first if is_activation(first) else second
        return self.pass_activation(active, func(_plain(first), _plain(second), **kwargs))

    def add_multiplied(
        self, func: Function, added: Any, first: Any, second: Any, *, beta: Any = 1, alpha: Any = 1
    ) -> Any:
        """The product by its rule, then the sum by its own."""
        if beta == 1 == alpha and not is_activation(second) and not is_activation(added):
            return self.linear(functional.linear, first, second.mT, added)
        product = self.multiply(torch.mul, self.contract(torch.matmul, first, second), alpha)
        scaled = self.multiply(torch.mul, added, beta) if is_activation(added) else added * beta
        return self.add(torch.add, product, scaled)

    def divide(self, func: Function, above: Any, below: Any, **kwargs: Any) -> Any:
        """What divides has no part in the quotient."""
        if not is_activation(above):
            return func(above, _plain(below), **kwargs)
        return self._one(func, above, _plain(below), **kwargs)

    def add(self, func: Function, first: Any, second: Any, **kwargs: Any) -> Any:
        """Two activations share a sum; a constant has no part in it."""
        if not (is_activation(first) and is_activation(second)):
            return self._one(func, first, second, **kwargs)
        if "alpha" in kwargs:
            second = self.multiply(torch.mul, second, kwargs["alpha"])
        both = torch.broadcast_tensors(first, second)
        rows = self._batch if both[0].shape[:1] and len(both[0]) % self._batch == 0 else 1
        return applied(SharedSum, *both, rows)

    def subtract(self, func: Function, first: Any, second: Any, **kwargs: Any) -> Any:
        """A sum with what is taken away."""
        if not (is_activation(first) and is_activation(second)):
            return self._one(func, first, second, **kwargs)
        return self.add(torch.add, first, self.elementwise(torch.neg, second), **kwargs)

    def join(self, func: Function, tensors: Sequence[Tensor], *args: Any, **kwargs: Any) -> Any:
        """What comes to constants between activations is written down."""
        leaves = [each if is_activation(each) else _leaf(each) for each in tensors]
        self.lost += [leaf for leaf, each in zip(leaves, tensors, strict=True) if leaf is not each]
        return func(leaves, *args, **kwargs)


def _each(change: Callable[[Any], Any], args: Sequence[Any]) -> list[Any]:
    """The operands changed, those in lists among them."""
    return [
        [change(one) for one in each] if isinstance(each, (list, tuple)) else change(each)
        for each in args
    ]


def _is_weight(value: Any) -> bool:
    """Whether this is a parameter, or one seen another way."""
    base = value._base if isinstance(value, Tensor) else None
    return isinstance(value if base is None else base, nn.Parameter)


def _from_gradient(value: Any) -> Any:
    return applied(FromGradient, value) if is_activation(value) else value


def _half(sign: Callable[[Tensor], Tensor], value: Any) -> Any:
    """What of an operand has this sign; all relevance of it is the operand's."""
    if not isinstance(value, Tensor) or not value.is_floating_point():
        return value
    half = sign(value.detach())
    return applied(FromGradient, applied(Pass, value, half)) if is_activation(value) else half


def _above(value: Tensor) -> Tensor:
    return value.clamp(min=0)


def _below(value: Tensor) -> Tensor:
    return value.clamp(max=0)


def _plain(value: Any) -> Any:
    return value.detach() if isinstance(value, Tensor) else value


def _leaf(value: Tensor) -> Tensor:
    return value.detach().requires_grad_() if value.is_floating_point() else value
