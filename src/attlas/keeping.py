"""Parts of long work that whoever runs it may keep, so that stopped work goes on inside it."""

from collections.abc import Callable, Iterable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from typing import Any

import numpy as np
from numpy.typing import NDArray

Arrays = list[NDArray[np.float64]]
Keep = Callable[[str, Callable[[], Arrays]], Arrays]


def kept(name: str, compute: Callable[[], Iterable[Any]]) -> Arrays:
    """The arrays that `compute` returns, or those that an earlier run has kept under this name.

    The name says what tells these numbers from others of the same work: most often the texts.
    Numbers are kept in double precision, which holds those of single precision and marks as well.
    """

    def in_double() -> Arrays:
        return [np.asarray(each, dtype=np.float64) for each in compute()]

    keep = _KEEPER.get()
    return in_double() if keep is None else keep(name, in_double)


@contextmanager
def keeping(keep: Keep) -> Iterator[None]:
    """Hand every part of the work within the block to `keep`, which may know it already."""
    token = _KEEPER.set(keep)
    try:
        yield
    finally:
        _KEEPER.reset(token)


_KEEPER: ContextVar[Keep | None] = ContextVar("who keeps parts of the work", default=None)
