"""The lock of a model: held by the blocks of one thread at a time, and given back from any."""

import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from functools import partial
from weakref import WeakKeyDictionary

from torch import nn

from attlas.restoring import Placed, placing

LATEST = 0.05  # seconds until a thread looks again, if nobody has told it that the model is free


class ModelLock:
    """Lets the blocks of one thread in, as many as there are, and makes other threads wait.

    Who holds it is in one list, which changes in one step: an interrupt finds a block either in it,
    to be given back, or not. A thread that gives back for another is no mistake.
    """

    def __init__(self) -> None:
        self.blocks: list[Placed] = []
        self._thread = 0
        self._guard = threading.RLock()
        self._freed = threading.Lock()

    def take(self, block: Placed) -> None:
        """Wait until no other thread holds the lock, and hold it for this block."""
        while not self._take(block):
            self._freed.acquire(timeout=LATEST)

    def _take(self, block: Placed) -> bool:
        with self._guard:
            own = threading.get_ident()
            if self.blocks and self._thread != own:
                return False
            self._thread = own
            self.blocks.append(block)
            return True

    def give_back(self, block: Placed) -> None:
        """Hold the lock no longer for this block, if it was held."""
        with self._guard:
            if block in self.blocks:
                self.blocks.remove(block)
            is_free = not self.blocks
        if is_free:
            with suppress(RuntimeError):  # nobody has waited since it was freed the last time
                self._freed.release()


_locks: WeakKeyDictionary[nn.Module, ModelLock] = WeakKeyDictionary()
_locks_guard = threading.RLock()


def hold(model: nn.Module, block: Placed) -> None:
    """Keep other threads out of a model until the block ends."""
    with _locks_guard:
        lock = _locks.setdefault(model, ModelLock())
    block.note(partial(lock.give_back, block))
    lock.take(block)


@contextmanager
def model_lock(model: nn.Module) -> Iterator[None]:
    """Keep other threads out of a model within the block; blocks of one thread may nest."""
    with placing() as block:
        hold(model, block)
        yield
