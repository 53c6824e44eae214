"""Activation functions that are modules: caught whole, however they are written out inside."""

import inspect
from collections.abc import Iterator
from contextlib import ExitStack, contextmanager
from threading import get_ident
from typing import Any
from weakref import WeakKeyDictionary

import torch
from torch import Tensor, nn

from attlas.models.relevance.rules import RelevanceRules, is_activation

_found: WeakKeyDictionary[nn.Module, list[nn.Module]] = WeakKeyDictionary()


@contextmanager
def caught(model: nn.Module, rules: RelevanceRules) -> Iterator[None]:
    """Within the block, what these modules do to an activation follows the rule of activations."""
    if model not in _found:
        _found[model] = [each for each in model.modules() if is_elementwise(each)]
    with ExitStack() as stack:
        for module in _found[model]:
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
