"""What commands print: results, tables, JSON and single lines."""

import json
import sys
from collections.abc import Iterable, Sequence
from pathlib import Path
from typing import Any

from attlas.progress import hush


def quiet_libraries() -> None:
    """Silence the messages of transformers, but not its errors."""
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()


def print_json(record: Any) -> None:
    """Print one JSON document."""
    print_line(json.dumps(record, ensure_ascii=False, allow_nan=False))


def print_line(line: str) -> None:
    """Print a line, or several."""
    hush()
    print(line, flush=True)


def tell(line: str) -> None:
    """Print a line on standard error."""
    hush()
    print(line, file=sys.stderr, flush=True)


def print_result(result: Any, *, tokens: bool = False, written: Sequence[Path] = ()) -> None:
    """Print a result the way it shows itself, and the names of the files that were written."""
    from rich.console import Console
    from rich.text import Text

    from attlas import views

    hush()
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
    hush()
    Console().print(table)
