"""Work in smaller batches when memory is short."""

from collections.abc import Callable, Iterator, Sequence
from typing import TypeVar

import torch
from torch import Tensor

from attlas.errors import AttlasError

Result = TypeVar("Result")
_TOKENS = {
    "cpu": 2**11,
    "cuda": 2**15,
}  # in a good batch; for a CPU: for each core, what its caches hold
_PLAIN = {"cuda": 2**17}  # if nothing is kept for gradients; small models are not busy with less
_SIGNS = ("can't allocate memory", "not enough memory")  # in the messages of torch's CPU allocator


def in_fitting_batches(
    rows: Sequence[int], work: Callable[[Sequence[int]], Result], too_large: str
) -> Iterator[Result]:
    """Work on all rows at once, or on halves while memory is short.

    `too_large` is the message of the error if a single row does not fit.
    """
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
    for half in (rows[:middle], rows[middle:]):
        yield from in_fitting_batches(half, work, too_large)


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
    own = reached.clone().split([each.numel() for each in single])  # such memory is scarce
    return [part.view(each.shape) for part, each in zip(own, single, strict=True)]


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
    return recording or (isinstance(problem, RuntimeError) and is_out_of_memory(problem))


def is_out_of_memory(problem: RuntimeError) -> bool:
    """Whether an error means that the device or this machine is out of memory."""
    message = str(problem)
    return isinstance(problem, torch.OutOfMemoryError) or any(sign in message for sign in _SIGNS)
