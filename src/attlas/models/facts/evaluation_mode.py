"""Evaluation mode: a model is locked, without dropout and frozen; all is restored afterwards."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from weakref import WeakKeyDictionary, WeakSet

from torch import nn

_locks: WeakKeyDictionary[nn.Module, threading.RLock] = WeakKeyDictionary()
_locks_guard = threading.Lock()
_in_use: WeakSet[nn.Module] = WeakSet()  # changed only while the lock of the model is held


def model_lock(model: nn.Module) -> threading.RLock:
    """The lock of a model, the same for every caller; a thread may take it repeatedly."""
    with _locks_guard:
        return _locks.setdefault(model, threading.RLock())


def every_module(model: nn.Module) -> list[nn.Module]:
    """Every module once; much faster than `modules()`."""
    found: dict[nn.Module, None] = {}
    waiting: list[nn.Module | None] = [model]
    while waiting:
        module = waiting.pop()
        if module is not None and module not in found:
            found[module] = None
            waiting.extend(module._modules.values())
    return list(found)


@contextmanager
def evaluation_mode(model: nn.Module) -> Iterator[None]:
    """Switch dropout off, freeze the parameters and keep other threads out, within the block.

    Blocks of one thread may nest; the inner ones cost nothing.
    """
    with model_lock(model):
        if model in _in_use:
            yield
            return
        modules = every_module(model)
        training = [module for module in modules if module.training]
        trainable = [
            parameter
            for module in modules
            for parameter in module._parameters.values()
            if parameter is not None and parameter.requires_grad
        ]
        try:
            _in_use.add(model)
            for module in training:
                module.training = False
            for parameter in trainable:
                parameter.requires_grad_(False)
            yield
        finally:
            _in_use.discard(model)
            for module in training:
                module.training = True
            for parameter in trainable:
                parameter.requires_grad_(True)
