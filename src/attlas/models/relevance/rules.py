"""Rules: a torch function mode that runs each operation on activations by its own rule.

An activation is a tensor that requires a gradient; in evaluation mode, parameters do not.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn
from torch.autograd import Function as Operation

from attlas.errors import UnsupportedModelError
from attlas.models.facts.hooks import OwnMode, hooking
from attlas.models.relevance import operations

Function = Callable[..., Any]
Rule = Callable[..., Any]
OPERANDS = ("input", "tensors", "mat1", "batch1", "mat2", "batch2", "other", "exponent")
_activations: WeakKeyDictionary[nn.Module, list[nn.Module]] = WeakKeyDictionary()


def is_activation(value: Any) -> bool:
    """Whether relevance may flow to this value."""
    return isinstance(value, Tensor) and value.requires_grad


def flatten(values: Sequence[Any]) -> list[Any]:
    """The operands, including those in lists."""
    found: list[Any] = []
    for value in values:
        found.extend(value) if isinstance(value, (list, tuple)) else found.append(value)
    return found


def applied(operation: type[Operation], *args: Any) -> Tensor:
    """The result of an operation with its own backward pass."""
    found: Tensor = operation.apply(*args)
    return found


class RelevanceRules(OwnMode):
    """Changes how operations on activations are differentiated, but not their results."""

    def __init__(self) -> None:
        super().__init__()
        self._rules = dict(self.table())
        self._placed.note(self._rules.clear)  # they are methods of this object

    def table(self) -> Mapping[Function, Rule]:
        """The rule of each function that has one; rules get the function and its arguments."""
        raise NotImplementedError

    def pass_activation(self, given: Tensor, result: Tensor) -> Tensor:
        """The result of an elementwise function, connected to its input by this rule."""
        raise NotImplementedError

    def run(self, func: Function, args: tuple[Any, ...], given: dict[str, Any]) -> Any:
        """Run the function by its rule, if it has one."""
        beside = operations.BESIDE.get(func, func)
        rule = self._rules.get(beside)
        if rule is None or not torch.is_grad_enabled():
            return _run(func, *args, **given)
        if not any(map(is_activation, flatten([*args, *given.values()]))):
            return func(*args, **given)
        operands = [*args, *(given.pop(name) for name in OPERANDS if name in given)]
        if beside is func:
            return rule(func, *operands, **given)
        result = rule(beside, operands[0].clone(), *operands[1:], **given)
        try:
            return operands[0].copy_(result)
        except RuntimeError:  # leaves and results of other rules cannot be overwritten
            return result

    def elementwise(self, func: Function, given: Any, *args: Any, **kwargs: Any) -> Any:
        """An elementwise function."""
        if not is_activation(given):
            return func(given, *args, **kwargs)
        return self.pass_activation(given, func(given.detach(), *args, **kwargs))

    def power(self, func: Function, base: Any, exponent: Any) -> Any:
        """Powers are elementwise functions; negative powers divide and are held constant."""
        if isinstance(exponent, (int, float)) and exponent < 0:
            return func(base, exponent).detach()
        return self.elementwise(func, base, exponent)

    def constant(self, func: Function, *args: Any, **kwargs: Any) -> Any:
        """The result is held constant: no relevance flows back."""
        return func(*args, **kwargs).detach()


def _run(func: Function, *args: Any, **kwargs: Any) -> Any:
    """Run a function without a rule; one that overwrites the result of a rule is refused."""
    try:
        return func(*args, **kwargs)
    except RuntimeError as problem:
        if "is being modified inplace" not in str(problem):
            raise
        raise UnsupportedModelError(
            "this model overwrites parts of its own states while it attends, so relevance cannot "
            "be followed through it"
        ) from problem


def rules_by_function(rules: Mapping[frozenset[Function], Rule]) -> dict[Function, Rule]:
    """Give each function the rule of its group (see operations.py)."""
    return {func: rule for group, rule in rules.items() for func in group}


@contextmanager
def caught(model: nn.Module, rules: RelevanceRules) -> Iterator[None]:
    """Let activation modules follow the rule for elementwise functions within the block."""
    if model not in _activations:
        _activations[model] = [each for each in model.modules() if is_elementwise(each)]
    with hooking() as hooks:
        for module in _activations[model]:
            catch = _Catch(rules)
            hooks.before(module, catch.enter)
            hooks.after(module, catch.leave)
        yield


class _Catch:
    """Detaches the input of a module, and connects its output to the input by the rule."""

    def __init__(self, rules: RelevanceRules) -> None:
        self._rules = rules
        self._given: Tensor | None = None

    def enter(self, module: nn.Module, args: tuple[Any, ...]) -> Any:
        """A hook before the module."""
        if len(args) != 1 or not is_activation(args[0]):
            return None
        self._given = args[0]
        return (
            args[0].detach().clone() if getattr(module, "inplace", False) else args[0].detach(),
        )

    def leave(self, module: nn.Module, args: tuple[Any, ...], output: Any) -> Any:
        """A hook behind the module."""
        given, self._given = self._given, None
        return output if given is None else self._rules.pass_activation(given, output)


def is_elementwise(module: nn.Module) -> bool:
    """Whether a module is an elementwise function other than the identity."""
    own = [*module.children(), *module.parameters(), *module.buffers()]
    return not own and _takes_one(module) and _acts_alone(module)


def _takes_one(module: nn.Module) -> bool:
    parameters = inspect.signature(module.forward).parameters.values()
    needed = [each for each in parameters if each.default is inspect.Parameter.empty]
    plain = all(each.kind is inspect.Parameter.POSITIONAL_OR_KEYWORD for each in needed)
    return plain and len(needed) == 1


def _acts_alone(module: nn.Module) -> bool:
    """Whether a change in one half of a probe leaves the other half of the result unchanged."""
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
