"""What the commands read and print."""

import json
import sys
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import asdict
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


def print_found(
    found: Any,
    html: Path | None,
    save: Path | None,
    as_json: bool,
    *,
    tokens: bool = False,
    drawn: Sequence[Path | None] = (),
) -> None:
    """Write a result to the files asked for, and print it; some are drawn already."""
    if html is not None:
        found.to_html(html)
    if save is not None:
        found.save(save)
    if as_json:
        print_json(found.to_dict())
    else:
        written = [path for path in (html, *drawn, save) if path]
        print_result(found, tokens=tokens, written=written)


def print_methods(methods: Iterable[Any], as_json: bool) -> None:
    """The methods in a table, or as JSON."""
    rows = [
        {
            "name": each.name,
            "family": each.family,
            "signed": each.signed,
            "target": each.of,
            "needs": list(each.needs),
            "gives": each.gives,
            "cost": each.cost,
            "options": dict(each.options),
            "paper": each.paper,
            "summary": each.summary,
        }
        for each in methods
    ]
    if as_json:
        print(json.dumps(rows, ensure_ascii=False))
        return
    cells = [
        (
            row["name"],
            row["family"],
            "yes" if row["signed"] else "no",
            row["target"] or "–",
            row["summary"],
        )
        for row in rows
    ]
    _print_table(("method", "family", "signed", "of the", "what a score is"), cells)


def print_cards(cards: Sequence[Any], as_json: bool, whole: bool) -> None:
    """The models in the box: a table, the whole card of one, or JSON."""
    if as_json:
        print(json.dumps([asdict(card) for card in cards], ensure_ascii=False))
    elif whole:
        print(cards[0].text.rstrip())
    else:
        rows = [(c.name, c.task, c.sites, f"{c.megabytes:.1f}", c.about) for c in cards]
        _print_table(("model", "task", "layers × heads", "MB", "what it is"), rows)


def print_verified(found: Iterable[Any], as_json: bool) -> list[str]:
    """The figures of each model as they come, and the names of those that failed."""
    verified = []
    for each in found:
        verified.append(each)
        if as_json:
            continue
        for figure, value in each.figures.items():
            least = each.minimum.get(figure)
            most = each.maximum.get(figure)
            needed = "" if least is None else f"at least {least:g}"
            needed = needed if most is None else f"at most {most:g}"
            print(f"{each.name:<20} {figure:<46} {value:7.4f}  {needed}", flush=True)
    if as_json:
        print(json.dumps([asdict(each) | {"passed": each.passed} for each in verified]))
    return [each.name for each in verified if not each.passed]


def _print_table(columns: Sequence[str], rows: Iterable[Sequence[str]]) -> None:
    from rich.console import Console
    from rich.table import Table
    from rich.text import Text

    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    table.add_column(columns[0], no_wrap=True)  # names stay whole
    for column in columns[1:]:
        table.add_column(column, overflow="fold")
    for row in rows:
        table.add_row(*(Text(str(cell)) for cell in row))
    Console().print(table)
