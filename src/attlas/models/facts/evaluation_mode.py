"""A model borrowed: held by a lock, in evaluation mode, with frozen parameters; all put back."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager
from weakref import WeakKeyDictionary, WeakSet

from torch import nn

_locks: WeakKeyDictionary[nn.Module, threading.RLock] = WeakKeyDictionary()
_locks_guard = threading.Lock()
_lent: WeakSet[nn.Module] = WeakSet()  # changed by those who hold the lock of a model


def model_lock(model: nn.Module) -> threading.RLock:
    """The one lock of a model; a thread may take it again."""
    with _locks_guard:
        return _locks.setdefault(model, threading.RLock())


def every_module(model: nn.Module) -> list[nn.Module]:
    """Every module once: far quicker than `modules()`."""
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
    """Within the block dropout is off, no parameter asks for a gradient, and no one else is in.

    Who has borrowed a model may borrow it again, at no cost.
    """
    with model_lock(model):
        if model in _lent:
            yield
            return
        modules = every_module(model)
        training = [module for module in modules if module.training]
        wanting = [
            parameter
            for module in modules
            for parameter in module._parameters.values()
            if parameter is not None and parameter.requires_grad
        ]
        try:
            _lent.add(model)
            for module in training:
                module.training = False
            for parameter in wanting:
                parameter.requires_grad_(False)
            yield
        finally:
            _lent.discard(model)
            for module in training:
                module.training = True
            for parameter in wanting:
                parameter.requires_grad_(True)
