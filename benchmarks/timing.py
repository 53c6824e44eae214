"""The wall-clock time of some work, on a processor or a GPU."""

import statistics
import time
from collections.abc import Callable
from typing import TypeVar

import torch

Result = TypeVar("Result")


def timed(work: Callable[[], Result], device: str) -> tuple[float, Result]:
    """Run the work once; return the seconds and the result."""
    wait(device)
    start = time.perf_counter()
    result = work()
    wait(device)
    return time.perf_counter() - start, result


def seconds(work: Callable[[], object], device: str, repeats: int) -> float:
    """The median of `repeats` runs, after one warm-up."""
    times = [timed(work, device)[0] for _ in range(repeats + 1)]
    return statistics.median(times[1:])


def wait(device: str) -> None:
    """Wait until a GPU has finished its work."""
    if device.startswith("cuda"):
        torch.cuda.synchronize()
