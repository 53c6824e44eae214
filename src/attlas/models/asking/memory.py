"""When memory is short: a batch is worked off in halves."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import torch

from attlas.errors import AttlasError

Result = TypeVar("Result")
_TOKENS = {"cpu": 2**11, "cuda": 2**15}  # a processor's, of each core: what its caches hold
_SIGNS = ("can't allocate memory", "not enough memory")  # of torch's allocator for the processor


def in_fitting_batches(
    rows: Sequence[int], work: Callable[[Sequence[int]], Result], too_large: str
) -> Iterator[Result]:
    """Work on all rows at once, or on smaller parts; `too_large` says that one is too many."""
    try:
        result = work(rows)
    except RuntimeError as problem:
        if not is_out_of_memory(problem):
            raise
        if len(rows) == 1:
            raise AttlasError(f"out of memory: {too_large}") from problem
    else:
        yield result
        return
    middle = len(rows) // 2
    for part in (rows[:middle], rows[middle:]):
        yield from in_fitting_batches(part, work, too_large)


def rows_of(device: torch.device, length: int) -> int:
    """How many rows of this many tokens are a good batch on a device."""
    cores = torch.get_num_threads() if device.type == "cpu" else 1
    return max(1, cores * _TOKENS.get(device.type, 2**13) // length)


def is_out_of_memory(problem: RuntimeError) -> bool:
    """Whether the device, or this machine, has no memory left for what was asked."""
    said = str(problem)
    return isinstance(problem, torch.OutOfMemoryError) or any(sign in said for sign in _SIGNS)
