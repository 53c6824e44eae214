"""What the commands read and print."""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import Any

from attlas.errors import UnknownNameError, UsageError


def quiet_libraries() -> None:
    """Keep transformers' own chatter out of the output; errors still come through."""
    from transformers.utils import logging

    logging.set_verbosity_error()
    logging.disable_progress_bar()


def read_text(text: str, pair: str | None, image: Path | None) -> Any:
    """The input that the arguments stand for: a text, a pair, or a picture."""
    if image is not None:
        return _read_image(image)
    first = _read_stdin() if text == "-" else text
    return first if pair is None else (first, pair)


def _read_stdin() -> str:
    try:
        return sys.stdin.buffer.read().decode("utf-8").strip("\n")
    except UnicodeDecodeError as problem:
        raise UsageError(f"standard input is not UTF-8: {problem.reason}") from problem


def _read_image(path: Path) -> Any:
    from PIL import Image, UnidentifiedImageError

    try:
        with Image.open(path) as picture:
            return picture.convert("RGB")
    except (OSError, UnidentifiedImageError, Image.DecompressionBombError) as problem:
        raise UsageError(f"the picture {path} cannot be read: {problem}") from problem


def parse_options(given: Sequence[str], known: Mapping[str, Any], method: str) -> dict[str, Any]:
    """`name=value` pairs; a value is JSON where it can be read so, else a string."""
    options: dict[str, Any] = {}
    for each in given:
        name, equals, value = each.partition("=")
        if not equals:
            raise UsageError(f"an option is written name=value, not {each!r}")
        if name not in known:
            raise UnknownNameError(f"option of {method}", name, known)
        try:
            options[name] = json.loads(value)
        except json.JSONDecodeError:
            options[name] = value
    return options


def print_json(record: Mapping[str, Any]) -> None:
    """One JSON document on standard output."""
    print(json.dumps(record, ensure_ascii=False, allow_nan=False))


def print_result(found: Any, *, tokens: bool = False, written: Sequence[Path] = ()) -> None:
    """A result, as it shows itself in a terminal, and the files that were written."""
    from rich.console import Console
    from rich.text import Text

    from attlas import views

    console = Console()
    if tokens:
        console.print(views.render({**found.payload(), "words": None}))
    else:
        console.print(found)
    for path in written:
        console.print(Text(f"wrote {path}"), soft_wrap=True)


def print_methods(methods: Iterable[Any], as_json: bool) -> None:
    """The methods in a table, or as JSON."""
    rows = [
        {
            "name": each.name,
            "family": each.family,
            "signed": each.signed,
            "target": each.of,
            "options": dict(each.options),
            "paper": each.paper,
            "summary": each.summary,
        }
        for each in methods
    ]
    if as_json:
        print(json.dumps(rows, ensure_ascii=False))
        return
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for column in ("method", "family", "signed", "of the", "what a score is"):
        table.add_column(column, overflow="fold")
    for row in rows:
        signed = "yes" if row["signed"] else "no"
        cells = (row["name"], row["family"], signed, row["target"] or "–", row["summary"])
        table.add_row(*(Text(str(cell)) for cell in cells))
    Console().print(table)
