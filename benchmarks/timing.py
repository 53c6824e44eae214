"""How long a piece of work takes, by the wall, on a processor or a GPU."""

import statistics
import time
from collections.abc import Callable
from typing import TypeVar

import torch

Result = TypeVar("Result")


def timed(work: Callable[[], Result], device: str) -> tuple[float, Result]:
    """The seconds that one run takes, and what it gives."""
    wait(device)
    start = time.perf_counter()
    result = work()
    wait(device)
    return time.perf_counter() - start, result


def seconds(work: Callable[[], object], device: str, repeats: int) -> float:
    """The median of so many runs, after one that is not counted."""
    times = [timed(work, device)[0] for _ in range(repeats + 1)]
    return statistics.median(times[1:])


def wait(device: str) -> None:
    """Let a GPU finish what it was given."""
    if device.startswith("cuda"):
        torch.cuda.synchronize()
