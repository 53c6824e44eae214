"""What the trials of a report found, without their plots: in a terminal, and as HTML."""

from collections.abc import Iterator, Mapping
from typing import Any

from rich.text import Text

from attlas.views.fragment import MONO, QUIET, as_text
from attlas.views.report import report_cells as cells
from attlas.views.units import visible

Payload = Mapping[str, Any]


def trial_lines(payload: Payload) -> Iterator[Text]:
    """Of each trial: its name, which attention, what it found, its figures, and where plots are."""
    if payload["trials"]:
        yield from (Text(), Text("The attention on trial", style="bold"))
    for trial in payload["trials"]:
        yield from (Text(), Text(visible(trial["name"]), style="bold"))
        yield Text(visible(trial["sentence"]))
        yield Text(f"Which attention: {visible(trial['scope'])}", style="dim")
        for each in trial["figures"]:
            yield Text(f"  {visible(each['name'])}: {figure_words(each)}")
        if trial["plots"]:
            yield Text(plot_words(trial), style="dim")


def trial_parts(payload: Payload) -> Iterator[str]:
    """The same as HTML that needs no script."""
    for trial in payload["trials"]:
        yield f'<div style="margin-top:8px"><b>{as_text(trial["name"])}</b></div>'
        yield f"<div>{as_text(trial['sentence'])}</div>"
        yield f'<div style="{QUIET}">Which attention: {as_text(trial["scope"])}</div>'
        for each in trial["figures"]:
            words = as_text(f"{each['name']}: {figure_words(each)}")
            yield f'<div style="{MONO};font-size:12px">{words}</div>'
        if trial["plots"]:
            yield f'<div style="{QUIET}">{as_text(plot_words(trial))}</div>'


def figure_words(each: Payload) -> str:
    """A figure of a trial, and the most that it could be."""
    words = cells.figure_words(each["figure"])
    return words if each["ceiling"] is None else f"{words}; at most {cells.number(each['ceiling'])}"


def plot_words(trial: Payload) -> str:
    """Which plots there are, and where."""
    titles = ", ".join(visible(plot["title"]) for plot in trial["plots"])
    return f"Drawn on the page: {titles}"
