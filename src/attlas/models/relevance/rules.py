"""Rules: a torch function mode that hands each operation on activations to a rule of its own.

An activation is a tensor that asks for a gradient: parameters do not while a model is borrowed.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager
from threading import get_ident
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.autograd import Function as Operation
from torch.overrides import TorchFunctionMode

from attlas.models.relevance import operations

Function = Callable[..., Any]
Rule = Callable[..., Any]
OPERANDS = ("input", "tensors", "mat1", "batch1", "mat2", "batch2", "other", "exponent")
_activations: WeakKeyDictionary[nn.Module, list[nn.Module]] = WeakKeyDictionary()


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


def rules_by_function(rules: Mapping[frozenset[Function], Rule]) -> dict[Function, Rule]:
    """Give each function the rule of its group (see operations.py)."""
    return {func: rule for group, rule in rules.items() for func in group}


@contextmanager
def caught(model: nn.Module, rules: RelevanceRules) -> Iterator[None]:
    """Within the block, what these modules do to an activation follows the rule of activations."""
    if model not in _activations:
        _activations[model] = [each for each in model.modules() if is_elementwise(each)]
    with ExitStack() as stack:
        for module in _activations[model]:
            catch = _Catch(rules)
            stack.callback(module.register_forward_pre_hook(catch.enter).remove)
            stack.callback(module.register_forward_hook(catch.leave).remove)
        yield


class _Catch:
    """Cuts a module off the graph on its way in, and ties its output to its input behind it."""

    def __init__(self, rules: RelevanceRules) -> None:
        self._rules = rules
        self._thread = get_ident()  # rules are of one thread, and hooks of all
        self._given: Tensor | None = None

    def enter(self, module: nn.Module, args: tuple[Any, ...]) -> Any:
        """A hook before the module."""
        if len(args) != 1 or not is_activation(args[0]) or get_ident() != self._thread:
            return None
        self._given = args[0]
        return (
            args[0].detach().clone() if getattr(module, "inplace", False) else args[0].detach(),
        )

    def leave(self, module: nn.Module, args: tuple[Any, ...], output: Any) -> Any:
        """A hook behind it."""
        if get_ident() != self._thread:
            return output
        given, self._given = self._given, None
        return output if given is None else self._rules.pass_activation(given, output)


def is_elementwise(module: nn.Module) -> bool:
    """Whether a module is a function of each element by itself, and not merely passes it on."""
    own = [*module.children(), *module.parameters(), *module.buffers()]
    return not own and _takes_one(module) and _acts_alone(module)


def _takes_one(module: nn.Module) -> bool:
    parameters = inspect.signature(module.forward).parameters.values()
    needed = [each for each in parameters if each.default is inspect.Parameter.empty]
    plain = all(each.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD for each in needed)
    return plain and len(needed) == 1


def _acts_alone(module: nn.Module) -> bool:
    """Whether a change in one half of a probe leaves the other half of the result as it was."""
    probe = torch.linspace(-2.0, 2.0, 16).reshape(1, 2, 8)
    other = probe.clone()
    other[..., 4:] += 1.0
    other[:, 1] += 1.0
    try:
        with torch.no_grad():
            first, second = module(probe.clone()), module(other)
    except Exception:
        return False
    if not isinstance(first, Tensor) or first.shape != probe.shape:
        return False
    alone = torch.equal(first[0, 0, :4], second[0, 0, :4])
    return alone and not torch.equal(first, probe)
