"""A judgement as a table: in a terminal, and as HTML that needs no script."""

from collections.abc import Iterator, Mapping
from html import escape
from typing import Any

from rich.console import Group
from rich.table import Table
from rich.text import Text

from attlas.views.licence import chance_words, licence_html, licence_lines
from attlas.views.markup import MONO, QUIET, card, heading
from attlas.views.markup import notes as note_lines
from attlas.views.terminal import notes, request_line
from attlas.views.units import visible

_HEADS = ("measure", "removal", "figure", "shuffled", "best", "share", "p", "")
ARROWS = {"higher": "↑", "lower": "↓"}
READING = (
    "↑ more is better, ↓ less is better. shuffled: the mean of the same scores at other tokens. "
    "best: the best order found. share: where the figure lies from shuffled (0) to best (1). "
    "p: how often shuffled scores do as well."
)
_WORDS = 2  # columns that hold words
SURE = 0.05  # of p


def render(payload: Mapping[str, Any]) -> Group:
    """What was judged, a row for each measure and removal, the notes, and how to read them."""
    table = Table(box=None, pad_edge=False, padding=(0, 2, 0, 0))
    for place, name in enumerate(_HEADS[:-1]):
        justify = "left" if place < _WORDS else "right"
        table.add_column(name, justify=justify, overflow="fold")  # type: ignore[arg-type]
    before = ""
    for row in payload["measured"]:
        name, *cells, _ = _cells(row)
        table.add_row(*map(Text, ["" if name == before else name, *cells]))
        before = name
    reading = [*_remarks(payload), Text(), Text(READING, style="dim")]
    told = [_summary(payload), Text(), table, *reading, *licence_lines(payload), *notes(payload)]
    return Group(request_line(payload), *told)


def _remarks(payload: Mapping[str, Any]) -> Iterator[Text]:
    """What is to be said of single rows: below the table, which has no room for words."""
    for row in payload["measured"]:
        *_, told = _cells(row)
        if told:
            where = f" ({_words(row['removal'])})" if row["removal"] else ""
            yield Text(f"{visible(row['measure'])}{where}: {told}", style="dim")


def _summary(payload: Mapping[str, Any]) -> Text:
    """The answer in one line: how often these scores surely do better than shuffled ones."""
    known = [row["p"] for row in payload["measured"] if row["p"] is not None]
    better = sum(p < SURE for p in known)
    of = f"{better} of {len(known)} figures are surely better than those of shuffled scores"
    return Text(f"{of} (p < {SURE:g}).", style="bold")


def fragment(payload: Mapping[str, Any]) -> str:
    """The table and the notes, as HTML."""
    look = f"{MONO};font-size:12px;border-collapse:collapse;margin:8px 0"
    table = f'<table style="{look}">{"".join(_rows(payload))}</table>'
    reading = f'<div style="{QUIET}">{escape(READING)}</div>'
    told = [*licence_html(payload), *note_lines(payload)]
    return card([heading(payload), table, reading, *told])


def _cells(row: Mapping[str, Any]) -> tuple[str, ...]:
    """The cells of one row."""
    told = "circular: computed by what the measure does" if row["circular"] else row["note"]
    return (
        f"{ARROWS.get(row['better'], '')} {visible(row['measure'])}",
        _words(row["removal"]),
        *(_number(row[name]) for name in ("value", "shuffled", "ceiling")),
        _number(row["share"], 2),
        chance_words(row["p"]),
        _words(told),
    )


def _rows(payload: Mapping[str, Any]) -> Iterator[str]:
    plain = "text-align:left;padding:0 16px 0 0"
    head = "".join(f'<th style="{plain};font-weight:400">{name}</th>' for name in _HEADS)
    yield f'<tr style="background:none;{QUIET}">{head}</tr>'
    for row in payload["measured"]:
        shown = "".join(f'<td style="{plain}">{escape(cell)}</td>' for cell in _cells(row))
        yield f'<tr style="background:none" title="{escape(row["reading"])}">{shown}</tr>'


def _words(text: str) -> str:
    return visible(text) if text else ""


def _number(value: float | None, digits: int = 3) -> str:
    return "" if value is None else f"{value:z.{digits}f}".replace("-", "−")
