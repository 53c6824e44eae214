"""A check of a model: whether it is opened exactly, and which methods can run on it."""

from collections.abc import Mapping
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from attlas.views.markup import MONO, QUIET, ROW, as_text, card
from attlas.views.units import visible

_CELL = "text-align:left;padding:0 16px 0 0"


def render(payload: Mapping[str, Any]) -> Group:
    """The questions with their answers, and whether each method can run."""
    return Group(
        _grid(_answers(payload)),
        Text("methods that can run"),
        _grid([f"  {name}", answer] for name, answer in _methods(payload)),
    )


def fragment(payload: Mapping[str, Any]) -> str:
    """The same two tables as HTML."""
    title = f'<div style="{QUIET}">methods that can run</div>'
    return card([_table(_answers(payload)), title, _table(_methods(payload))])


def _answers(payload: Mapping[str, Any]) -> list[list[str]]:
    return [[visible(each["question"]), visible(each["answer"])] for each in payload["answers"]]


def _methods(payload: Mapping[str, Any]) -> list[list[str]]:
    found = payload["methods"].items()
    return [[visible(name), visible(reason) if reason else "yes"] for name, reason in found]


def _grid(rows: Any) -> Table:
    table = Table.grid(padding=(0, 2))
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def _table(rows: list[list[str]]) -> str:
    lines = "".join(
        f'<tr style="{ROW}">'
        + "".join(f'<td style="{_CELL}">{as_text(cell)}</td>' for cell in row)
        + "</tr>"
        for row in rows
    )
    return f'<table style="{MONO};font-size:12px;border-collapse:collapse">{lines}</table>'
