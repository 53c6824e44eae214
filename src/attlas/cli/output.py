"""What commands print: results, tables, JSON and single lines."""

import json
import shlex
import sys
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from pathlib import Path
from shutil import get_terminal_size
from signal import SIGINT, SIGTERM, signal
from textwrap import wrap
from typing import Any

import typer

from attlas.progress import hush, say

GAP, BELOW = 2, 4  # columns between two cells, and before what stands below a line
LEAST_ROOM = 36  # columns for the last cell of a line


def quiet_libraries() -> None:
    """Silence the messages of transformers, but not its errors."""
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()


def print_json(record: Any) -> None:
    """Print one JSON document."""
    print_line(json.dumps(record, ensure_ascii=False, allow_nan=False))


def print_plan(plan: Any, as_json: bool) -> None:
    """Print what a verb would take."""
    if as_json:
        print_json(plan.to_dict())
    else:
        print_line(str(plan))


def print_line(line: str) -> None:
    """Print a line, or several."""
    hush()
    print(line, flush=True)


@contextmanager
def stoppable(told: Callable[[], str], *, resumes: bool) -> Iterator[None]:
    """Say how to go on, if the user or the system stops the work within the block."""

    def stop(number: int, frame: Any) -> None:
        raise KeyboardInterrupt(number)

    before = signal(SIGTERM, stop)
    try:
        yield
    except KeyboardInterrupt as stopped:
        say(f"attlas: stopped after {told()}")
        if resumes:
            say(shlex.join(["attlas", *sys.argv[1:]]))
        raise typer.Exit(128 + (SIGTERM if stopped.args else SIGINT)) from None
    finally:
        signal(SIGTERM, before)


def print_result(
    result: Any, changed: Mapping[str, Any], written: Sequence[Path] = (), last: str = ""
) -> None:
    """Print a result as it shows itself with parts of its payload changed, then what was written.

    `last` is printed below; a path or command that stands on a line of its own is never broken.
    """
    from rich.console import Console
    from rich.text import Text

    from attlas import views

    hush()
    console = Console()
    console.print(views.render({**result.payload(), **changed}))
    for path in written:
        console.print(Text(f"wrote {path}"), soft_wrap=True)
    first, *alone = last.splitlines() or [""]
    for line, unbroken in [(first, not alone), *((each, True) for each in alone)]:
        if line:
            console.print(Text(line), soft_wrap=unbroken)


def print_table(rows: Iterable[Sequence[str]], indent: int = 0) -> None:
    """Print a table as wide as the terminal; the last column is broken into lines.

    Where little room is left for it, it stands below the others. This is not done by rich, which
    takes longer to import than all else that prints a list.
    """
    cells = [[str(cell) for cell in row] for row in rows]
    widths = [max(map(len, column)) for column in zip(*cells, strict=True)]
    left, room = " " * indent, get_terminal_size().columns - indent
    start = sum(widths[:-1]) + GAP * (len(widths) - 1)
    below = room - start < LEAST_ROOM
    place = " " * (BELOW if below else start)
    for *first, last in cells:
        line = "".join(f"{cell:<{width + GAP}}" for cell, width in zip(first, widths, strict=False))
        told = wrap(last, room - len(place)) or [""]
        shown = [line.rstrip()] if below else [f"{line}{told.pop(0)}".rstrip()]
        shown += [f"{place}{line}" for line in told]
        print_line("\n".join(f"{left}{each}" for each in shown))
