"""Rules whose backward pass carries relevance itself: those of Chefer, Gur and Wolf, CVPR 2021.

Autograd carries relevance instead of gradients. It adds what arrives along several paths, which is
the rule for values that are used more than once. Functions that only move values need no rule.
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
    """The rules for each operation, for a batch of `rows`.

    `lost` are constants that are put beside token vectors: their relevance belongs to no token.
    """

    def __init__(self, rows: int) -> None:
        super().__init__()
        self._batch = rows
        self.lost: list[Tensor] = []

    def table(self) -> Mapping[Function, Rule]:
        """A rule for every operation that computes with activations."""
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
        """A linear layer; or a product, if the weight is an activation."""
        if is_activation(weight):
            product = self.contract(torch.matmul, given, weight.mT)
            return product if bias is None else self.add(torch.add, product, bias)
        return applied(PositiveLinear, given, weight, bias)

    def contract(self, func: Function, *args: Any, **kwargs: Any) -> Any:
        """Activations share the relevance of their product; with a weight it is a linear layer."""
        operands = flatten(args)
        active = sum(map(is_activation, operands))
        if active > 1 or not any(map(_is_weight, operands)):
            return self.share(func, active, *args, **kwargs)
        halves = [func(*_each(partial(_half, sign), args), **kwargs) for sign in (_above, _below)]
        result = func(*_each(_plain, args), **kwargs)
        return applied(Pass, applied(ToGradient, halves[0] + halves[1], 1), result)

    def share(self, func: Function, operands: int, *args: Any, **kwargs: Any) -> Any:
        """Share relevance by each element's contribution, equally among `operands`."""
        given = _each(_from_gradient, args)
        return applied(ToGradient, func(*given, **kwargs), operands)

    def add_up(self, func: Function, *args: Any, **kwargs: Any) -> Any:
        """Relevance of a sum goes to each element by its contribution."""
        return self.share(func, 1, *args, **kwargs)

    def multiply(self, func: Function, first: Any, second: Any, **kwargs: Any) -> Any:
        """Two activations share the relevance of a product; a constant gets none."""
        if is_activation(first) and is_activation(second):
            return self.share(func, 2, first, second, **kwargs)
        return self._one(func, first, second, **kwargs)

    def _one(self, func: Function, first: Any, second: Any, **kwargs: Any) -> Any:
        """All relevance goes to the operand that is an activation."""
        active = first if is_activation(first) else second
        return self.pass_activation(active, func(_plain(first), _plain(second), **kwargs))

    def add_multiplied(
        self, func: Function, added: Any, first: Any, second: Any, *, beta: Any = 1, alpha: Any = 1
    ) -> Any:
        """First the rule of the product, then that of the sum."""
        if beta == 1 == alpha and not is_activation(second) and not is_activation(added):
            return self.linear(functional.linear, first, second.mT, added)
        product = self.multiply(torch.mul, self.contract(torch.matmul, first, second), alpha)
        scaled = self.multiply(torch.mul, added, beta) if is_activation(added) else added * beta
        return self.add(torch.add, product, scaled)

    def divide(self, func: Function, above: Any, below: Any, **kwargs: Any) -> Any:
        """The divisor gets no relevance."""
        if not is_activation(above):
            return func(above, _plain(below), **kwargs)
        return self._one(func, above, _plain(below), **kwargs)

    def add(self, func: Function, first: Any, second: Any, **kwargs: Any) -> Any:
        """Two activations share the relevance of a sum; a constant gets none."""
        if not (is_activation(first) and is_activation(second)):
            return self._one(func, first, second, **kwargs)
        if "alpha" in kwargs:
            second = self.multiply(torch.mul, second, kwargs["alpha"])
        both = torch.broadcast_tensors(first, second)
        rows = self._batch if both[0].shape[:1] and len(both[0]) % self._batch == 0 else 1
        return applied(SharedSum, *both, rows)

    def subtract(self, func: Function, first: Any, second: Any, **kwargs: Any) -> Any:
        """A difference is a sum with the negative."""
        if not (is_activation(first) and is_activation(second)):
            return self._one(func, first, second, **kwargs)
        return self.add(torch.add, first, self.elementwise(torch.neg, second), **kwargs)

    def join(self, func: Function, tensors: Sequence[Tensor], *args: Any, **kwargs: Any) -> Any:
        """The relevance of constants that are joined with activations is recorded as lost."""
        leaves = [each if is_activation(each) else _leaf(each) for each in tensors]
        self.lost += [leaf for leaf, each in zip(leaves, tensors, strict=True) if leaf is not each]
        return func(leaves, *args, **kwargs)


def _each(change: Callable[[Any], Any], args: Sequence[Any]) -> list[Any]:
    """Change each operand, including those in lists."""
    return [
        [change(one) for one in each] if isinstance(each, (list, tuple)) else change(each)
        for each in args
    ]


def _is_weight(value: Any) -> bool:
    """Whether this is a parameter or a view of one."""
    base = value._base if isinstance(value, Tensor) else None
    return isinstance(value if base is None else base, nn.Parameter)


def _from_gradient(value: Any) -> Any:
    return applied(FromGradient, value) if is_activation(value) else value


def _half(sign: Callable[[Tensor], Tensor], value: Any) -> Any:
    """The elements of an operand with this sign; their relevance goes to the operand."""
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
