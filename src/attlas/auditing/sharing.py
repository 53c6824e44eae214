"""An audit that several processes share: each takes work items that no other has claimed."""

import os
import subprocess
import sys
import tempfile
import threading
from collections.abc import Callable, Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from math import prod
from os import PathLike
from pathlib import Path
from time import sleep
from typing import IO

import torch

from attlas.auditing.audit import run
from attlas.auditing.folder import Folder, JoinedFolder
from attlas.auditing.plan import AuditPlan
from attlas.auditing.work.items import work_items
from attlas.errors import UsageError
from attlas.progress import Step, Tell, Watch, silent
from attlas.results.report import Report

POLL_SECONDS = 0.2
ON_DEVICE = 3  # processes that keep a device busy; more would wait for one another
ON_PROCESSOR = 4
LONG = 8  # batches of texts: a shorter audit ends before other processes have started
ROOM = 2**32  # bytes of memory that a process needs beside the weights
COPIES = 4  # of the weights: their gradients, and copies that trials train
Words = Callable[[Path], Sequence[str]]  # from a folder to the command that joins its audit


def usual_workers(plan: AuditPlan) -> int:
    """How many processes to use: several, if there is room and one does not keep a machine busy.

    A processor is not kept busy because its cores do the small products of one batch together more
    slowly than each those of its own.
    """
    subject = plan.texts.subject
    weights = sum(each.numel() * each.element_size() for each in subject.model.parameters())
    needed = COPIES * weights + ROOM
    if subject.device.type == "cuda" and (os.cpu_count() or 1) >= 2 * ON_DEVICE:
        free, _ = torch.cuda.mem_get_info(subject.device)
        return ON_DEVICE if ON_DEVICE * needed < free else 1
    if subject.device.type != "cpu" or len(plan.batches) < LONG:
        return 1
    return max(1, min(torch.get_num_threads(), ON_PROCESSOR, _free_memory() // needed))


def _free_memory() -> int:
    """Bytes of this machine that are free; none if it does not say."""
    names = ("SC_AVPHYS_PAGES", "SC_PAGE_SIZE")
    known = getattr(os, "sysconf_names", {})
    return prod(os.sysconf(each) for each in names) if known.keys() >= set(names) else 0


def run_shared(
    plan: AuditPlan,
    out: str | PathLike[str] | None,
    workers: int,
    words: Words,
    watch: Watch,
    tell: Tell,
    meanwhile: Callable[[], None] = lambda: None,
) -> Report:
    """Do what is left of a plan in this many processes; the figures are the same as with one.

    If a process ends early, its work is done here, and `tell` says so. `meanwhile` is called while
    the other processes start.
    """
    if workers < 1:
        raise UsageError(f"workers are at least 1, not {workers}")

    def share(folder: Folder) -> None:
        command = [sys.executable, "-m", "attlas", *words(folder.path)]
        left = sum(not item.is_done(folder) for item in work_items(plan))
        count = max(1, min(workers, left))  # more would have nothing to do
        with threads_for(count), _started(command, count - 1) as others:
            meanwhile()
            if others:
                _do_unclaimed(plan, folder, watch)
                _wait(others, plan, folder, watch, tell)

    return run(plan, out, watch, share)


def join(plan: AuditPlan, out: str | PathLike[str]) -> None:
    """Work on an audit that another process runs, until every item is claimed."""
    threading.Thread(target=_end_with_parent, daemon=True).start()
    with torch.inference_mode(False), JoinedFolder(out, plan.identity()) as folder:
        _do_unclaimed(plan, folder, lambda step: None)


def _end_with_parent() -> None:
    """Wait for the pipe from the parent, which never writes, to close when the parent ends."""
    os.read(0, 1)
    os._exit(1)


def _do_unclaimed(plan: AuditPlan, folder: Folder, watch: Watch) -> None:
    items = work_items(plan)
    names = [item.name for item in items]
    for item in items:
        if not item.is_done(folder) and folder.claim(item.name):
            watch(Step(item.label, folder.written(names), len(names)))
            item.work(folder, silent)


@contextmanager
def threads_for(workers: int) -> Iterator[None]:
    """Divide the threads of this process by the number of workers."""
    before = torch.get_num_threads()
    torch.set_num_threads(max(1, before // workers))
    try:
        yield
    finally:
        torch.set_num_threads(before)


@dataclass(frozen=True, eq=False)
class _Other:
    """A process that works beside this one, and what it writes to its standard error."""

    process: subprocess.Popen[bytes]
    errors: IO[bytes]

    def running(self) -> bool:
        """Whether it still runs."""
        return self.process.poll() is None

    def last_line(self) -> str:
        """The last line that it wrote."""
        self.errors.seek(0)
        lines = self.errors.read().decode(errors="replace").split("\n")
        return next((line.strip() for line in reversed(lines) if line.strip()), "no reason given")


@contextmanager
def _started(command: Sequence[str], count: int) -> Iterator[list[_Other]]:
    """This many processes, which end with the block at the latest."""
    with ExitStack() as held:
        yield [held.enter_context(_other(command)) for _ in range(count)]


@contextmanager
def _other(command: Sequence[str]) -> Iterator[_Other]:
    environment = {**os.environ, "OMP_NUM_THREADS": str(torch.get_num_threads())}
    with (
        tempfile.TemporaryFile() as errors,
        subprocess.Popen(
            command,
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=errors,
            env=environment,
        ) as process,
    ):
        try:
            yield _Other(process, errors)
        finally:
            process.terminate()


def _wait(
    others: Sequence[_Other], plan: AuditPlan, folder: Folder, watch: Watch, tell: Tell
) -> None:
    names = [item.name for item in work_items(plan)]
    while folder.written(names) < len(names) and any(each.running() for each in others):
        watch(Step("work of other processes", folder.written(names), len(names)))
        sleep(POLL_SECONDS)
    for other in others:
        if other.process.poll():
            tell(f"one process ended early ({other.last_line()}); its work is done here")
