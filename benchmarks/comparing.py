"""What a comparison gets and what it yields, and how work is timed."""

import ctypes
import gc
import multiprocessing
import os
import sys
import time
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from statistics import median
from typing import Any, TypeVar

import torch

Result = TypeVar("Result")
MEGABYTE = 2**20
ROUNDS = 5


@dataclass(frozen=True)
class Setup:
    """Where a comparison runs, and how long it may take."""

    device: str = "cpu"
    small: bool = False  # sizes that show in seconds whether everything works

    @property
    def on_gpu(self) -> bool:
        return self.device.startswith("cuda")

    def size(self, full: Result, small: Result) -> Result:
        return small if self.small else full

    def timed(self, work: Callable[[], Result]) -> tuple[float, Result]:
        """Run the work once; return the seconds and the result."""
        self.wait()
        start = time.perf_counter()
        result = work()
        self.wait()
        return time.perf_counter() - start, result

    def in_turns(self, *works: Callable[[], object], rounds: int | None = None) -> list[float]:
        """The median seconds of each, which take turns in every round, after a round to warm up."""
        taken = [
            [self.timed(work)[0] for work in works]
            for _ in range(1 + (1 if self.small else rounds or ROUNDS))
        ]
        return [median(column) for column in zip(*taken[1:], strict=True)]

    def wait(self) -> None:
        if self.on_gpu:
            torch.cuda.synchronize()

    def peak(self, work: Callable[[], object]) -> tuple[float, float]:
        """The seconds of the work, and the megabytes that it had in use beyond those before it."""
        before = self._start_peak()
        seconds, kept = self.timed(work)
        used = self._peak_bytes() - before
        del kept
        return seconds, used / MEGABYTE

    def _start_peak(self) -> int:
        gc.collect()
        if self.on_gpu:
            torch.cuda.reset_peak_memory_stats()
            return torch.cuda.memory_allocated()
        ctypes.CDLL("libc.so.6").malloc_trim(0)  # or memory that was freed hides what is used
        Path("/proc/self/clear_refs").write_text("5")  # Linux: start the peak anew
        return self._peak_bytes()

    def _peak_bytes(self) -> int:
        if self.on_gpu:
            return torch.cuda.max_memory_allocated()
        lines = Path("/proc/self/status").read_text().splitlines()
        return int(next(line for line in lines if line.startswith("VmHWM")).split()[1]) * 2**10


@dataclass(frozen=True)
class Row:
    """One comparison: what we do, what it is compared with, the seconds of both."""

    name: str
    against: str
    ours: float | None  # seconds of the call that a user makes; None if it did not end
    peer: float
    inner: float | None = None  # seconds of the function behind that call
    difference: float | None = None  # the largest, of what both compute; as `unit` says
    unit: str = ""  # of the difference; empty: that of the scores
    goal: tuple[float, float] | None = None  # ours ≤ factor × peer + seconds
    megabytes: float | None = None
    peer_megabytes: float | None = None
    goal_megabytes: float | None = None
    note: str = ""

    @property
    def ratio(self) -> float | None:
        """How many times as fast as the peer."""
        return None if self.ours is None else self.peer / self.ours

    @property
    def reached(self) -> bool | None:
        """Whether the goal is reached; None if there is none."""
        if self.goal is None:
            return None
        factor, seconds = self.goal
        fits = self.goal_megabytes is None or (self.megabytes or 0) <= self.goal_megabytes
        return self.ours is not None and self.ours <= factor * self.peer + seconds and fits


def apart(function: Callable[..., Result], *given: Any) -> Result:
    """Call it in a new process, so that what others hold does not count.

    It comes from a server that has loaded everything and touched no device.
    """
    os.environ["PYTHONPATH"] = os.pathsep.join(sys.path)  # for the server
    context = multiprocessing.get_context("forkserver")
    context.set_forkserver_preload([function.__module__])
    with context.Pool(1) as pool:
        return pool.apply(function, given)


def largest_difference(ours: Any, theirs: Any) -> float:
    """Of two sequences of arrays of the same shapes."""
    pairs = zip(ours, theirs, strict=True)
    return max(float((_array(a) - _array(b)).abs().max()) for a, b in pairs)


def _array(values: Any) -> torch.Tensor:
    return torch.as_tensor(values).detach().cpu().double()
