"""Memory: how much is free, smaller batches when it runs out, and what comes from a GPU."""

import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import replace
from functools import partial, wraps
from pathlib import Path
from time import monotonic
from typing import Any, ParamSpec, TypeVar
from weakref import finalize

import numpy as np
import torch
from torch import Tensor

from attlas.errors import ShortageError, is_shortage
from attlas.models.tap.recording import forget_recordings
from attlas.results.maps import AnyArray, Arrays, LateArrays

Given = ParamSpec("Given")
Result = TypeVar("Result")
_TOKENS = {
    "cpu": 2**11,
    "cuda": 2**15,
}  # in a good batch; for a CPU: for each core, what its caches hold
# For so many seconds a GPU is not asked again what is free: that takes as long as a short pass.
# If it is less by then, work goes on in halves.
FRESH = 1.0
_FREE: dict[torch.device, tuple[float, int]] = {}
_PLAIN = {"cuda": 2**17}  # if nothing is kept for gradients; small models are not busy with less


class Shortages:
    """Where memory ran out: of each kind of batch, what failed and what it went on with."""

    def __init__(self) -> None:
        self._sizes: dict[str, tuple[int, int]] = {}  # the largest that failed, the least tried

    def add(self, what: str, size: int) -> None:
        """A batch of this size did not fit, and is done in halves."""
        most, least = self._sizes.get(what, (size, size))
        self._sizes[what] = (max(most, size), min(least, max(size // 2, 1)))

    def notes(self) -> tuple[str, ...]:
        """What a result says of them, a line for each kind of batch."""
        return tuple(
            f"Memory ran out at {most} {what} at once; the work went on with {least}."
            for what, (most, least) in self._sizes.items()
        )


_WATCHED: ContextVar[tuple[Shortages, ...]] = ContextVar("_WATCHED", default=())


@contextmanager
def noting_shortages() -> Iterator[Shortages]:
    """Learn where memory runs out within the block, in whatever is called there."""
    found = Shortages()
    token = _WATCHED.set((*_WATCHED.get(), found))
    try:
        yield found
    finally:
        _WATCHED.reset(token)


def telling_shortages(function: Callable[Given, Result]) -> Callable[Given, Result]:
    """Make a function add to the notes of what it returns where memory ran out meanwhile.

    It returns a record with notes, or a list of such records; anything else is left as it is.
    """

    @wraps(function)
    def call(*given: Given.args, **named: Given.kwargs) -> Result:
        with noting_shortages() as found:
            result: Any = function(*given, **named)
        notes = found.notes()
        if not notes:
            return result  # type: ignore[no-any-return]
        several = isinstance(result, list)
        told = [_with_notes(each, notes) for each in (result if several else [result])]
        return told if several else told[0]  # type: ignore[return-value]

    return call


def _with_notes(record: Any, notes: tuple[str, ...]) -> Any:
    return replace(record, notes=(*record.notes, *notes)) if hasattr(record, "notes") else record


def in_fitting_batches(
    rows: Sequence[int],
    work: Callable[[Sequence[int]], Result],
    too_large: str,
    what: str = "texts",
) -> Iterator[Result]:
    """Work on all rows at once, or on halves while memory is short.

    `too_large` is the message of the error if a single row does not fit, and `what` the rows are.
    Where such batches are within others, that error has the outer one go on in halves too.
    """
    try:
        result = work(rows)
    except (RuntimeError, MemoryError) as problem:
        if not is_shortage(problem):
            raise
        if len(rows) == 1:
            raise ShortageError(f"out of memory: {too_large}") from problem
    else:
        yield result
        return
    forget_recordings()
    for found in _WATCHED.get():
        found.add(what, len(rows))
    middle = len(rows) // 2
    for half in (rows[:middle], rows[middle:]):
        yield from in_fitting_batches(half, work, too_large, what)


def free_bytes(device: torch.device) -> int | None:
    """How much memory a device can still give; None if it does not say."""
    if device.type == "cuda":
        asked, free = _FREE.get(device, (0.0, 0))
        if monotonic() > asked + FRESH:
            free = _free_there(device)
            _FREE[device] = monotonic(), free
        return free
    return _free_here() if device.type == "cpu" else None


def _free_there(device: torch.device) -> int:
    """What a GPU has free and torch keeps of it without use, within what the process may take."""
    known = torch.cuda.memory_stats_as_nested_dict(device)  # the flat version is much slower
    reserved, allocated = (
        known.get(f"{kind}_bytes", {}).get("all", {}).get("current", 0)
        for kind in ("reserved", "allocated")
    )
    free, total = torch.cuda.mem_get_info(device)
    allowed = int(torch.cuda.get_per_process_memory_fraction(device) * total)
    return int(min(free + reserved, allowed) - allocated)


def _free_here() -> int | None:
    """What this machine has free, or what the container leaves of it, if that is less."""
    try:
        lines = Path("/proc/meminfo").read_text().splitlines()
        free = next(int(each.split()[1]) * 1024 for each in lines if "MemAvailable" in each)
    except (OSError, StopIteration):
        return None
    try:
        most, used = (
            int(Path(f"/sys/fs/cgroup/memory.{each}").read_text()) for each in ("max", "current")
        )
    except (OSError, ValueError):  # no container, or one without a limit
        return free
    return max(min(free, most - used), 0)


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


def late_arrays(tensors: Sequence[Tensor], room: "Allowance") -> LateArrays:
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


class Allowance:
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


class Homes(Allowance):
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
_WAITING = Allowance(2**28)


def rows_of(device: torch.device, length: int) -> int:
    """How many rows of `length` tokens make a good batch on a device."""
    return max(1, _tokens(device) // length)


def plain_tokens(device: torch.device) -> int:
    """How many tokens make a good batch that keeps nothing for gradients."""
    return max(_tokens(device), _PLAIN.get(device.type, 0))


def _tokens(device: torch.device) -> int:
    cores = torch.get_num_threads() if device.type == "cpu" else 1
    return cores * _TOKENS.get(device.type, 2**13)


def is_passing(problem: Exception) -> bool:
    """Whether an error says nothing about the model: memory is short, or a recording is not met."""
    recording = torch.cuda.is_available() and torch.cuda.is_current_stream_capturing()
    return recording or is_shortage(problem)
