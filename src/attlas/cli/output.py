"""What commands print: results, tables, JSON and progress."""

import json
from collections.abc import Callable, Iterable, Iterator, Sequence
from contextlib import contextmanager
from pathlib import Path
from typing import Any


def quiet_libraries() -> None:
    """Silence the messages of transformers, but not its errors."""
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()


def print_json(record: Any) -> None:
    """Print one JSON document."""
    print(json.dumps(record, ensure_ascii=False, allow_nan=False))


def print_result(result: Any, *, tokens: bool = False, written: Sequence[Path] = ()) -> None:
    """Print a result the way it shows itself, and the names of the files that were written."""
    from rich.console import Console
    from rich.text import Text

    from attlas import views

    console = Console()
    if tokens:
        console.print(views.render({**result.payload(), "words": None}))
    else:
        console.print(result)
    for path in written:
        console.print(Text(f"wrote {path}"), soft_wrap=True)


def print_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    """Print a table whose first column, of names, is never broken."""
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(columns[0], no_wrap=True)
    for column in columns[1:]:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text(str(cell)) for cell in row))
    Console().print(table)


@contextmanager
def progress_bar() -> Iterator[Callable[[Any], None]]:
    """Show progress on standard error, if that is a terminal; yields what takes each Step."""
    from rich.console import Console
    from rich.progress import Progress
    from rich.text import Text

    console = Console(stderr=True)
    with Progress(console=console, transient=True, disable=not console.is_terminal) as bar:
        task = bar.add_task("", total=None)

        def show(step: Any) -> None:
            what = Text(step.what).markup
            bar.update(task, description=what, completed=step.done, total=step.total)

        yield show
