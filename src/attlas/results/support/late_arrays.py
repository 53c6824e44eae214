"""Arrays that are elsewhere, on a GPU, until somebody looks at one of them."""

import threading
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

AnyArray = NDArray[np.floating[Any]]


class LateArrays(Sequence):  # type: ignore[type-arg]  # a checker would look at its items
    """Arrays whose shapes are known; all are brought when the first of them is looked at."""

    def __init__(
        self, shapes: Sequence[tuple[int, ...]], bring: Callable[[], Sequence[AnyArray]]
    ) -> None:
        self.shapes = tuple(shapes)
        self._bring: Callable[[], Sequence[AnyArray]] | None = bring
        self._arrays: tuple[AnyArray, ...] = ()
        self._guard = threading.RLock()

    @property
    def is_here(self) -> bool:
        """Whether somebody has looked."""
        return self._bring is None

    def __len__(self) -> int:
        return len(self.shapes)

    @overload
    def __getitem__(self, place: int) -> AnyArray: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[AnyArray, ...]: ...
    def __getitem__(self, place: int | slice) -> AnyArray | tuple[AnyArray, ...]:
        return self._all()[place]

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process gets the arrays."""
        return tuple, (self._all(),)

    def _all(self) -> tuple[AnyArray, ...]:
        with self._guard:
            if self._bring is not None:
                self._arrays = tuple(self._bring())
                self._bring = None  # with what it held on the GPU
            return self._arrays


Arrays: TypeAlias = tuple[AnyArray, ...] | LateArrays


def shapes_of(arrays: Arrays) -> list[tuple[int, ...]]:
    """The shape of each, without bringing any."""
    if isinstance(arrays, LateArrays):
        return list(arrays.shapes)
    return [each.shape for each in arrays]
