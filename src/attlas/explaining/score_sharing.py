"""Scores that several processes write: each explains the parts that no other has claimed."""

import gc
import os
import pickle
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator, Sequence
from contextlib import ExitStack, contextmanager
from dataclasses import dataclass
from io import BytesIO
from typing import IO, Any

import pyarrow as pa
import torch

from attlas.data.sources import DataRow, DataRows
from attlas.errors import UsageError
from attlas.explaining.method_call import MethodCall
from attlas.explaining.row_explainer import RowExplainer
from attlas.explaining.score_parts import SCHEMA, ScoreParts, score_row
from attlas.explaining.streams import chunks
from attlas.methods import METHODS

LENGTH = 8  # bytes that say how long the rest is


def check_workers(count: int) -> None:
    """Refuse a number of processes that cannot be."""
    if count < 1:
        raise UsageError(f"workers are at least 1, not {count}")


def write_part(
    parts: ScoreParts, explainer: RowExplainer, number: int, chunk: Sequence[DataRow]
) -> dict[str, Any]:
    """Explain the rows of a part, and write it; how many have a problem."""
    outcomes = explainer.outcomes(chunk)
    problems = sum(isinstance(each, str) for each in outcomes)
    details = {"rows": len(chunk), "problems": problems}
    records = [score_row(*each) for each in zip(chunk, outcomes, strict=True)]
    parts.write(number, pa.Table.from_pylist(records, SCHEMA), details)
    return details


@dataclass(frozen=True, eq=False)
class Other:
    """A process that works beside this one, and what it writes to its standard error."""

    process: subprocess.Popen[bytes]
    errors: IO[bytes]

    @property
    def is_running(self) -> bool:
        """Whether it still runs."""
        return self.process.poll() is None

    @property
    def failure(self) -> str:
        """The last line that it wrote, if it ended with an error."""
        if not self.process.poll():
            return ""
        self.errors.seek(0)
        lines = self.errors.read().decode(errors="replace").splitlines()
        return next((line.strip() for line in reversed(lines) if line.strip()), "no reason given")


@contextmanager
def others(
    explainer: RowExplainer, rows: DataRows, parts: ScoreParts, size: int, of: int
) -> Iterator[list[Other]]:
    """The other processes of so many, which end with the block at the latest."""
    if of == 1:
        yield []
        return
    call = explainer.call
    told: dict[str, Any] = {
        "subject": explainer.subject,
        "method": call.method.name,
        "call": {"request": call.request, "options": call.options, "licence": call.licence},
        "asked": explainer.asked,
        "threads": max(1, torch.get_num_threads() // of),
    }
    told |= {"rows": rows, "out": str(parts.out), "settings": parts.settings, "size": size}
    content = BytesIO()
    torch.save(told, content)  # a plain pickle would not take what is on a GPU
    with ExitStack() as held:
        yield [held.enter_context(_other(content.getvalue())) for _ in range(1, of)]


@contextmanager
def _other(content: bytes) -> Iterator[Other]:
    with (
        tempfile.TemporaryFile() as errors,
        subprocess.Popen(
            [sys.executable, "-m", "attlas.explaining.score_sharing"],
            stdin=subprocess.PIPE,
            stdout=subprocess.DEVNULL,
            stderr=errors,
        ) as process,
    ):
        try:
            threading.Thread(target=_hand_over, args=(process, content), daemon=True).start()
            yield Other(process, errors)
        finally:
            process.terminate()


def _hand_over(process: subprocess.Popen[bytes], content: bytes) -> None:
    """Write what the process needs; its pipe stays open, and closes when this process ends."""
    assert process.stdin is not None
    try:
        process.stdin.write(len(content).to_bytes(LENGTH, "big"))
        process.stdin.write(content)
        process.stdin.flush()
    except OSError:  # it has ended already
        return


def main() -> None:
    """Explain parts that nobody has claimed, as the process says that started this one."""
    length = int.from_bytes(sys.stdin.buffer.read(LENGTH), "big")
    content = BytesIO(sys.stdin.buffer.read(length))
    threading.Thread(target=_end_with_parent, daemon=True).start()
    # It comes from the process that started this one, not from a file.
    told = torch.load(content, weights_only=False, pickle_module=pickle)
    torch.set_num_threads(told["threads"])
    call = MethodCall(METHODS[told["method"]], **told["call"])
    explainer = RowExplainer(told["subject"], call, told["asked"])
    parts = ScoreParts(told["out"], told["settings"])
    gc.freeze()  # what is loaded by now stays: to look through it again and again takes long
    for number, chunk in enumerate(chunks(iter(told["rows"]), told["size"])):
        if parts.claim(number) and parts.read(number) is None:
            write_part(parts, explainer, number, chunk)


def _end_with_parent() -> None:
    """Wait for the pipe from the parent, which writes no more, to close when the parent ends."""
    os.read(0, 1)
    os._exit(1)


if __name__ == "__main__":
    main()
