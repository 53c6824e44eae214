"""An audit that several processes share: each takes a part of the work that nobody has taken."""

import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from time import sleep
from typing import IO

import torch

from attlas.auditing.folder.folder import Folder, JoinedFolder
from attlas.auditing.planning import Plan
from attlas.auditing.run import carry_out, pieces, working_in
from attlas.errors import UsageError
from attlas.models.subject import Subject
from attlas.progress import Step, Tell, Watch
from attlas.results.report import Report

LOOK_AGAIN = 0.2  # seconds
ON_DEVICE = 3  # processes that keep a device busy; more of them take turns on it
ROOM = 2**32  # bytes of a device, for what a process needs beside the weights
COPIES = 4  # of the weights: their gradients, and copies that trials train
Words = Callable[[Path], Sequence[str]]  # of the command that joins the audit in a folder


def usual_workers(subject: Subject) -> int:
    """How many processes to use: several where a device would wait for one and has room for all."""
    if subject.device.type != "cuda" or (os.cpu_count() or 1) < 2 * ON_DEVICE:
        return 1
    weights = sum(each.numel() * each.element_size() for each in subject.model.parameters())
    free, _ = torch.cuda.mem_get_info(subject.device)
    return ON_DEVICE if ON_DEVICE * (COPIES * weights + ROOM) < free else 1


def run_shared(
    plan: Plan,
    out: str | PathLike[str] | None,
    workers: int,
    words: Words,
    watch: Watch,
    tell: Tell,
    meanwhile: Callable[[], None] = lambda: None,
) -> Report:
    """Carry a plan out, or the rest of it, in so many processes; they find the same figures.

    What a process had begun that ended early is done here, and `tell` says so. `meanwhile` is done
    while the others start.
    """
    if workers < 1:
        raise UsageError(f"workers are at least 1, not {workers}")
    with torch.inference_mode(False), working_in(out, plan) as folder:
        if not folder.done:
            command = [sys.executable, "-m", "attlas", *words(folder.path)]
            with (
                _threads(workers) as threads,
                _started(command, workers - 1, threads) as others,
            ):
                meanwhile()
                if others:
                    _work_off(plan, folder, watch)
                    _wait(others, plan, folder, watch, tell)
        return carry_out(plan, folder, watch, keep=out is not None)


def join(plan: Plan, out: str | PathLike[str]) -> None:
    """Work on an audit that another process holds, until nothing is left to take."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with torch.inference_mode(False), JoinedFolder(out, plan.identity()) as folder:
        _work_off(plan, folder, lambda step: None)


def _end_with_parent() -> None:
    """The parent never writes: its end of the pipe goes when it goes, however it ends."""
    os.read(0, 1)
    os._exit(1)


def _work_off(plan: Plan, folder: Folder, watch: Watch) -> None:
    found = pieces(plan, folder)
    names = [piece.name for piece in found]
    for piece in found:
        if not folder.has(piece.name) and folder.claim(piece.name):
            watch(Step(piece.what, folder.written(names), len(names)))
            piece.work()


@contextmanager
def _threads(workers: int) -> Iterator[int]:
    """As many threads for each process as there are cores for it."""
    before = torch.get_num_threads()
    each = max(1, before // workers)
    torch.set_num_threads(each)
    try:
        yield each
    finally:
        torch.set_num_threads(before)


@dataclass(frozen=True, eq=False)
class _Other:
    """A process that works beside this one, and what it says if it fails."""

    process: subprocess.Popen[bytes]
    said: IO[bytes]

    def running(self) -> bool:
        """Whether it is still at work."""
        return self.process.poll() is None

    def why(self) -> str:
        """The last line that it wrote."""
        self.said.seek(0)
        lines = self.said.read().decode(errors="replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "no reason given")


@contextmanager
def _started(command: Sequence[str], count: int, threads: int) -> Iterator[list[_Other]]:
    """So many processes, which end with the block at the latest."""
    with ExitStack() as held:
        yield [held.enter_context(_other(command, threads)) for _ in range(count)]


@contextmanager
def _other(command: Sequence[str], threads: int) -> Iterator[_Other]:
    known = {**os.environ, "OMP_NUM_THREADS": str(threads)}
    with (
        tempfile.TemporaryFile() as said,
        subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=said,
            env=known,
        ) as process,
    ):
        try:
            yield _Other(process, said)
        finally:
            process.terminate()


def _wait(others: Sequence[_Other], plan: Plan, folder: Folder, watch: Watch, tell: Tell) -> None:
    names = [piece.name for piece in pieces(plan, folder)]
    while folder.written(names) < len(names) and any(each.running() for each in others):
        watch(Step("what other processes are at", folder.written(names), len(names)))
        sleep(LOOK_AGAIN)
    for other in others:
        if other.process.poll():
            tell(f"one process ended early ({other.why()}); its work is done here")
