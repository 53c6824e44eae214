"""Triggers as a table: in a terminal, and as HTML that needs no script."""

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from attlas.views.markup import MONO, QUIET, as_text, card, question
from attlas.views.markup import notes as note_lines
from attlas.views.terminal import notes
from attlas.views.units import visible

_HEADS = ("trigger", "harms", "before", "random", "after", "drop beyond random", "attribution")
_ROWS = 20  # triggers shown in a notebook


def render(payload: Mapping[str, Any]) -> Group:
    """The model, a row for each trigger, and the notes."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for name in _HEADS:
        table.add_column(name, justify="left" if name in _HEADS[:2] else "right", overflow="fold")
    for row in payload["triggers"]:
        table.add_row(*map(Text, _cells(row)))
    asked = Text(visible(f"triggers on {payload['model']}"), style="dim")
    reading = [Text(), Text(payload["reading"], style="dim")]
    return Group(asked, Text(), table, *notes(payload), *reading)


def fragment(payload: Mapping[str, Any]) -> str:
    """The table and the notes, as HTML."""
    heading = question(payload, f"{as_text(payload['model'])} · triggers")
    look = f"{MONO};font-size:12px;border-collapse:collapse;margin:8px 0"
    rows = "".join(_rows(payload))
    return card([heading, f'<table style="{look}">{rows}</table>', *note_lines(payload)])


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    """The cells of one trigger: what it does to the class that it harms most."""
    most = row["strongest"]
    return (
        visible(row["text"]),
        visible(most["label"]),
        _percent(most["before"]),
        _percent(most["control"]),
        _percent(most["after"]),
        f"{_points(most['drop'])} ({_points(most['low'])} to {_points(most['high'])})",
        f"{row['attribution']:.2g}",
    )


def _rows(payload: Mapping[str, Any]) -> Iterator[str]:
    plain = "text-align:left;padding:0 16px 0 0"
    head = "".join(f'<th style="{plain};font-weight:400">{name}</th>' for name in _HEADS)
    yield f'<tr style="background:none;{QUIET}">{head}</tr>'
    for row in payload["triggers"][:_ROWS]:
        shown = "".join(f'<td style="{plain}">{escape(cell)}</td>' for cell in _cells(row))
        yield f'<tr style="background:none">{shown}</tr>'


def _percent(share: float) -> str:
    return f"{_points(share)} %"


def _points(share: float) -> int:
    return round(100 * share)
