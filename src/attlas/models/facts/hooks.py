"""Hooks, other forwards and torch modes that act in their own context only, and go with a block.

Another thread may use the model as it likes meanwhile: it meets none of them.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from functools import partial, wraps
from typing import Any

from torch import nn
from torch.overrides import (
    TorchFunctionMode,
    _get_current_function_mode,
    _pop_mode,
    _push_mode,
)
from torch.utils.hooks import RemovableHandle

from attlas.restoring import Placed, placing


class Hooks:
    """Hooks on the modules of a model, for the length of a block."""

    def __init__(self, placed: Placed) -> None:
        self._placed = placed
        self._handles: list[RemovableHandle] = []
        self._newest: tuple[dict[int, Any], Any] = {}, None  # torch may not have handed it over yet
        placed.note(self._remove)

    def before(self, module: nn.Module, hook: Callable[..., Any], **options: Any) -> None:
        """Call a hook before each call of a module; the options are those of torch."""
        self.before_any(module, self._own(hook), **options)

    def before_any(self, module: nn.Module, hook: Callable[..., Any], **options: Any) -> None:
        """Call a hook before each call of a module, whoever calls it."""
        self._newest = module._forward_pre_hooks, hook
        self._handles.append(module.register_forward_pre_hook(hook, **options))

    def after(self, module: nn.Module, hook: Callable[..., Any], **options: Any) -> None:
        """Call a hook behind each call of a module; the options are those of torch."""
        own = self._own(hook)
        self._newest = module._forward_hooks, own
        self._handles.append(module.register_forward_hook(own, **options))

    def instead(self, module: nn.Module, make: Callable[..., Callable[..., Any]]) -> None:
        """Put what `make` makes of a module's forward in its place; hooks still run."""
        mine, before = vars(module).get("forward"), module.forward
        new = make(before)

        @wraps(before)
        def forward(*args: Any, **kwargs: Any) -> Any:
            return (new if self._placed.is_here else before)(*args, **kwargs)

        self._placed.note(partial(_put_back, module, forward, mine))
        module.forward = forward

    def _own(self, hook: Callable[..., Any]) -> Callable[..., Any]:
        def met(*given: Any) -> Any:
            return hook(*given) if self._placed.is_here else None

        return met

    def _remove(self) -> None:
        for handle in self._handles:
            handle.remove()
        there, newest = self._newest
        for number in [number for number, hook in there.items() if hook is newest]:
            del there[number]
        self._newest = {}, None  # or it would refer to itself by its own hook


def _put_back(module: nn.Module, forward: Callable[..., Any], before: Any) -> None:
    if vars(module).get("forward") is not forward:
        return
    if before is None:
        del module.forward
    else:
        module.forward = before


@contextmanager
def hooking() -> Iterator[Hooks]:
    """Hooks that are removed when the block ends."""
    with placing() as placed:
        yield Hooks(placed)


class OwnMode(TorchFunctionMode):
    """A torch mode that acts in its own context only, and may be closed out of order.

    Torch has one stack of modes for each thread and takes away the highest, whichever was closed.
    """

    def __init__(self) -> None:
        super().__init__()
        self._placed = Placed()
        self._placed.note(_drop_closed)

    def __enter__(self) -> Any:
        _drop_closed()
        self._placed.place()
        _push_mode(self)
        return self

    def __exit__(self, *problem: Any) -> None:
        self._placed.undo()

    @property
    def is_closed(self) -> bool:
        """Whether its block has ended."""
        return not self._placed.is_open

    def __torch_function__(
        self,
        func: Callable[..., Any],
        types: Any,
        args: tuple[Any, ...] = (),
        kwargs: Mapping[str, Any] | None = None,
    ) -> Any:
        """Run the function as the mode does, or as it is if the mode was not entered here."""
        if not self._placed.is_here:
            return func(*args, **(kwargs or {}))
        return self.run(func, args, dict(kwargs or {}))

    def run(self, func: Callable[..., Any], args: tuple[Any, ...], given: dict[str, Any]) -> Any:
        """What the mode does with a function and its arguments."""
        raise NotImplementedError


def _drop_closed() -> None:
    """Take closed modes off this thread's stack, from the top."""
    highest = _get_current_function_mode()
    while isinstance(highest, OwnMode) and highest.is_closed:
        _pop_mode()
        highest = _get_current_function_mode()
