"""The licence of a heat map: its word, why, and what each removal shows."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from rich.table import Table
from rich.text import Text

from attlas.views.markup import MONO, QUIET, ROW, as_text
from attlas.views.terminal import text_table
from attlas.views.units import visible

HEADS = ("removal", "where", "p", "reliability", "which way", "enough alone", "needed")
READING = (
    "where: how much of the best order the largest scores reach; chance is 0. p: how often the "
    "same scores in another order do as well. reliability: whether other orders of removal would "
    "find the same tokens. which way: {way}; of all that pulls in brackets. enough alone: the "
    "fewest tokens found that keep the prediction. needed: the fewest without which it changes."
)
WAYS = {
    True: "how much has the right sign",
    False: "how much of what is highlighted speaks for the target",
}


def licence_lines(payload: Mapping[str, Any]) -> Iterator[Text | Table]:
    """The licence for a terminal; nothing if there is none."""
    licence = payload.get("licence")
    if licence:
        yield Text()
        yield Text.assemble((f"{_word(licence)} ", "bold"), visible(licence["why"]))
        yield text_table([HEADS, *_cells(payload)])
        yield Text(_reading(licence), style="dim")


def licence_html(payload: Mapping[str, Any]) -> Iterator[str]:
    """The licence as HTML that needs no script."""
    licence = payload.get("licence")
    if licence:
        yield f"<div><b>{as_text(_word(licence))}</b> {as_text(licence['why'])}</div>"
        rows = "".join(_html_row(cells) for cells in [HEADS, *_cells(payload)])
        look = f"{MONO};font-size:12px;border-collapse:collapse;margin:4px 0"
        yield f'<table style="{look}">{rows}</table>'
        yield f'<div style="{QUIET}">{escape(_reading(licence))}</div>'


def _word(licence: Mapping[str, Any]) -> str:
    word = visible(licence["word"])
    return f"{word[0].upper()}{word[1:]}."


def _reading(licence: Mapping[str, Any]) -> str:
    return READING.format(way=WAYS[licence["signed"]])


def _cells(payload: Mapping[str, Any]) -> Iterator[tuple[str, ...]]:
    for row in payload["licence"]["removals"]:
        which = _percent(row["right_way"])
        beside = _percent(row["for_target"])
        yield (
            visible(row["removal"]),
            _percent(row["share"]),
            chance_words(row["p"]),
            "" if row["reliability"] is None else f"{row['reliability']:.2f}",
            f"{which} ({beside})" if which else "",
            _tokens(payload, row["enough"]),
            _tokens(payload, row["needed"]),
        )


def _percent(value: float | None) -> str:
    return "" if value is None else f"{100 * value:z.0f} %".replace("-", "−")


def chance_words(value: float | None) -> str:
    """A p-value; it is never zero."""
    if value is None:
        return ""
    return "< .001" if value < 0.001 else f"{value:.3f}"


def _tokens(payload: Mapping[str, Any], places: Sequence[int] | None) -> str:
    if places is None:
        return "none found"
    labels = [visible(payload["tokens"][place]["label"]) for place in places]
    return " · ".join(labels) or "nothing"


def _html_row(cells: Sequence[str]) -> str:
    look = "text-align:left;padding:0 16px 0 0"
    shown = "".join(f'<td style="{look}">{escape(cell)}</td>' for cell in cells)
    return f'<tr style="{ROW}">{shown}</tr>'
