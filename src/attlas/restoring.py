"""What is put in place for a while: it acts in its own context only, and is taken away again.

Each change notes first how it is undone. Undoing may be asked for twice, in any order and from any
thread, since generators, tasks and Ctrl-C end blocks as they like. A verb that is interrupted
undoes whatever its own blocks left behind.
"""

import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from functools import wraps
from typing import Any, ParamSpec, TypeVar

Given = ParamSpec("Given")
Returned = TypeVar("Returned")
Content = TypeVar("Content")


class Placed:
    """Changes that were made together, and that are undone together, the last one first."""

    def __init__(self, content: Any = None) -> None:
        self.content = content
        self.is_open = True
        self._undo: list[Callable[[], Any]] = []

    @property
    def is_here(self) -> bool:
        """Whether this is open, and was put in place in the current context."""
        return self.is_open and self in _HERE.get()

    def note(self, undo: Callable[[], Any]) -> None:
        """Remember how a change is undone, before it is made.

        `undo` must do no harm if it is called twice, or if the change was never made.
        """
        self._undo.append(undo)

    def place(self) -> None:
        """Act in this context from now on."""
        _OF_THREAD.placed.append(self)
        _HERE.set((*_HERE.get(), self))

    def undo(self) -> None:
        """Undo all changes; if that is interrupted, the next call goes on."""
        self.is_open, self.content = False, None
        while self._undo:
            self._undo[-1]()
            self._undo.pop()
        _HERE.set(tuple(each for each in _HERE.get() if each.is_open))
        _OF_THREAD.forget(self)


class _OfThread(threading.local):
    """What each thread has put in place and not taken away."""

    def __init__(self) -> None:
        self.placed: list[Placed] = []

    def forget(self, placed: Placed) -> None:
        """Strike this off the list; another thread may have put it there."""
        if placed in self.placed:
            self.placed.remove(placed)


@contextmanager
def placing(content: Any = None) -> Iterator[Placed]:
    """Changes for the length of a block, which acts in this context; see `Placed.note`."""
    placed = Placed(content)
    try:
        placed.place()
        yield placed
    finally:
        try:
            placed.undo()
        except KeyboardInterrupt:
            placed.undo()
            raise


def here(kind: type[Content]) -> list[Content]:
    """The content of this kind of everything that is open in this context, the first one first."""
    # What is closed has no content.
    return [content for each in _HERE.get() if isinstance(content := each.content, kind)]


def settled(function: Callable[Given, Returned]) -> Callable[Given, Returned]:
    """Let a function that is interrupted leave nothing behind."""

    @wraps(function)
    def call(*given: Given.args, **named: Given.kwargs) -> Returned:
        before = tuple(_OF_THREAD.placed)
        put_back = [look() for look in _SETTINGS]
        try:
            return function(*given, **named)
        except KeyboardInterrupt:
            for each in put_back:
                each()
            undo_since(before)
            raise

    return call


def keeps(look: Callable[[], Callable[[], Any]]) -> None:
    """Have a setting of the thread that others change put back when a verb is interrupted.

    `look` sees what the setting is and returns what puts that back. A library's own block may leave
    its setting behind, if Ctrl-C comes between the change and the block.
    """
    _SETTINGS.append(look)


def undo_since(before: tuple[Placed, ...]) -> None:
    """Undo what this thread has put in place and was not there before."""
    for placed in reversed(tuple(_OF_THREAD.placed)):
        if placed not in before:
            placed.undo()


_HERE: ContextVar[tuple[Placed, ...]] = ContextVar("what is put in place here", default=())
_OF_THREAD = _OfThread()
_SETTINGS: list[Callable[[], Callable[[], Any]]] = []
