"""The process of a job: loads the model, does the work, and tells the server how far it is.

It ends when the server does: nothing is left behind that writes into the same folder.
"""

import os
import signal
import threading
from collections.abc import Callable
from contextlib import suppress
from dataclasses import asdict, dataclass
from multiprocessing.connection import Connection
from pathlib import Path
from typing import Any

from pydantic import TypeAdapter

from attlas.errors import AttlasError, first_line, is_shortage
from attlas.models.load import load
from attlas.models.subject import Subject
from attlas.progress import Step
from attlas.serving.errors import Refused
from attlas.serving.jobs.auditing import work_audit
from attlas.serving.jobs.pruning import work_prune
from attlas.serving.jobs.searching import work_adversary, work_same_output
from attlas.serving.jobs.telling import Teller
from attlas.serving.requests import JobRequest

NICE = 5  # requests come first
Work = Callable[[Subject, Any, Teller, Path], dict[str, Any]]
KINDS: dict[str, Work] = {
    "adversary": work_adversary,
    "same_output": work_same_output,
    "prune": work_prune,
    "audit": work_audit,
}


@dataclass(frozen=True)
class Order:
    """What a process is told to do: the operator's name of the model, and what was asked."""

    name: str
    request: dict[str, Any]
    folder: Path  # of this job alone


def work_on(connection: Connection, order: Order) -> None:
    """Do a job, and send what happens: steps, points, and at last the result or an error."""
    signal.signal(signal.SIGINT, signal.SIG_IGN)  # the server decides
    signal.signal(signal.SIGTERM, signal.SIG_DFL)
    threading.Thread(target=_end_with, args=[connection], daemon=True).start()
    if hasattr(os, "nice"):
        os.nice(NICE)
    lock = threading.Lock()

    def send(kind: str, content: Any) -> None:
        with lock:
            connection.send((kind, content))

    teller = Teller(
        lambda step: send("step", asdict(step)), lambda *point: send("point", list(point))
    )
    try:
        teller.step(Step("loading the model", 0, 0))
        given = TypeAdapter(JobRequest).validate_python(order.request, strict=False)
        result = KINDS[given.job](load(order.name), given, teller, order.folder)
        send("done", result)
    except (AttlasError, Refused) as problem:
        send("failed", str(problem))
    except Exception as problem:
        short = "there was not enough memory" if is_shortage(problem) else first_line(problem)
        send("failed", short)


def _end_with(connection: Connection) -> None:
    """End this process when the other end of the connection is gone."""
    with suppress(EOFError, OSError):
        connection.recv()
    os._exit(1)
