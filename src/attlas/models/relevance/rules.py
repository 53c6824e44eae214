"""Rules: a torch function mode that hands each operation on activations to a rule of its own.

An activation is a tensor that asks for a gradient: parameters do not while a model is borrowed.
"""

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import torch
from torch import Tensor
from torch.autograd import Function as Operation
from torch.overrides import TorchFunctionMode

from attlas.models.relevance import operations

Function = Callable[..., Any]
Rule = Callable[..., Any]
OPERANDS = ("input", "tensors", "mat1", "batch1", "mat2", "batch2", "other", "exponent")


def is_activation(value: Any) -> bool:
    """Whether relevance may flow to this."""
    return isinstance(value, Tensor) and value.requires_grad


def flatten(values: Sequence[Any]) -> list[Any]:
    """The operands, those in lists among them."""
    found: list[Any] = []
    for value in values:
        found.extend(value) if isinstance(value, (list, tuple)) else found.append(value)
    return found


def applied(operation: type[Operation], *args: Any) -> Tensor:
    """What an operation with a backward pass of its own gives."""
    found: Tensor = operation.apply(*args)
    return found


class RelevanceRules(TorchFunctionMode):
    """Changes how operations on activations are differentiated, and nothing that they give."""

    def __init__(self) -> None:
        super().__init__()
        self._rules = self.table()

    def table(self) -> Mapping[Function, Rule]:
        """The rule of each function that has one; it is called with the function and its input."""
        raise NotImplementedError

    def pass_activation(self, given: Tensor, result: Tensor) -> Tensor:
        """The result of a function of each element, tied to what it was given by its rule."""
        raise NotImplementedError

    def __torch_function__(
        self,
        func: Function,
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Let the function run by its rule, if it has one."""
        beside = operations.BESIDE.get(func, func)
        rule = self._rules.get(beside)
        if rule is None or not torch.is_grad_enabled():
            return func(*args, **(kwargs or {}))
        given = dict(kwargs or {})
        if not any(map(is_activation, flatten([*args, *given.values()]))):
            return func(*args, **given)
        operands = [*args, *(given.pop(name) for name in OPERANDS if name in given)]
        if beside is func:
            return rule(func, *operands, **given)
        result = rule(beside, operands[0].clone(), *operands[1:], **given)
        try:
            return operands[0].copy_(result)
        except RuntimeError:  # nothing may be written over a leaf, or over what another rule gave
            return result

    def elementwise(self, func: Function, given: Any, *args: Any, **kwargs: Any) -> Any:
        """A function of each element by itself."""
        if not is_activation(given):
            return func(given, *args, **kwargs)
        return self.pass_activation(given, func(given.detach(), *args, **kwargs))

    def power(self, func: Function, base: Any, exponent: Any) -> Any:
        """Powers are functions of each element; those that divide are held constant."""
        if isinstance(exponent, (int, float)) and exponent < 0:
            return func(base, exponent).detach()
        return self.elementwise(func, base, exponent)

    def constant(self, func: Function, *args: Any, **kwargs: Any) -> Any:
        """What scales others is held constant."""
        return func(*args, **kwargs).detach()


def rows_of(rules: Mapping[str, Rule]) -> dict[Function, Rule]:
    """Each function of these groups of operations with the rule of its group."""
    return {func: rule for group, rule in rules.items() for func in getattr(operations, group)}
