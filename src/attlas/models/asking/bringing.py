"""Bringing: what a GPU computed, in memory that numpy reads, now or when somebody looks at it."""

import threading
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any
from weakref import finalize

import numpy as np
import torch
from torch import Tensor

from attlas.results.support.late_arrays import AnyArray, Arrays, LateArrays


def brought(tensors: Sequence[Tensor]) -> list[Tensor]:
    """These tensors in float32, in memory that numpy reads.

    From a GPU they come together, through memory that it can write to: one by one, and into any
    other memory, takes several times longer.
    """
    single = [each.detach().float() for each in tensors]
    if not single[0].is_cuda:
        return [each.cpu() for each in single]
    reached = torch.empty(sum(each.numel() for each in single), pin_memory=True)
    parts = reached.split([each.numel() for each in single])
    for part, each in zip(parts, single, strict=True):
        part.view(each.shape).copy_(each, non_blocking=True)
    torch.cuda.synchronize(single[0].device)
    own = _HOMES.of(reached)
    sizes = [each.numel() for each in single]
    pairs = zip(own.split(sizes), single, strict=True)
    return [part.view(each.shape) for part, each in pairs]


def may_wait(tensors: Sequence[Tensor]) -> bool:
    """Whether these are on a GPU that has room for them until somebody looks at them."""
    return bool(tensors) and tensors[0].is_cuda and _WAITING.has_room(_bytes(tensors))


def arrays_of(tensors: Sequence[Tensor]) -> Arrays:
    """These tensors as arrays; those that may wait are brought when somebody looks at one."""
    if may_wait(tensors):
        return late_arrays(tensors, _WAITING)
    return tuple(each.numpy() for each in brought(tensors)) if tensors else ()


def late_arrays(tensors: Sequence[Tensor], room: "Room") -> LateArrays:
    """Arrays that are brought when somebody looks; they take this room until then."""
    release: list[Callable[[], Any]] = []

    def bring(tensors: Sequence[Tensor]) -> list[AnyArray]:
        here = [each.numpy() for each in brought(tensors)]
        release[0]()
        return here

    late = LateArrays([tuple(each.shape) for each in tensors], partial(bring, tensors))
    release.append(room.take(late, _bytes(tensors)))
    return late


def _bytes(tensors: Sequence[Tensor]) -> int:
    return sum(each.nbytes for each in tensors)


class Room:
    """How many bytes of some memory are taken, of those that may be, and by what."""

    def __init__(self, most: int) -> None:
        self._most, self._held, self._guard = most, 0, threading.RLock()

    def has_room(self, size: int) -> bool:
        """Whether so many bytes more may be taken."""
        return self._held + size <= self._most

    def take(self, owner: Any, size: int) -> Callable[[], Any]:
        """Take these bytes until the owner is gone, or what is returned is called."""
        with self._guard:
            self._held += size
        return finalize(owner, self._free, size)

    def _free(self, size: int) -> None:
        with self._guard:
            self._held -= size


class Homes(Room):
    """What results from a GPU live in: the memory that it wrote to, as long as that is little.

    Such memory is scarce, but it is used again as soon as a result is gone, while any other memory
    must be given by the system page by page, which takes longer than the copy.
    """

    def of(self, reached: Tensor) -> Tensor:
        """The same values, where they are or in memory of numpy's."""
        array = reached.numpy()
        if not self.has_room(array.nbytes):
            return torch.from_numpy(np.empty(len(reached), np.float32)).copy_(reached)
        self.take(array, array.nbytes)
        return torch.from_numpy(array)


_HOMES = Homes(2**28)
_WAITING = Room(2**28)
