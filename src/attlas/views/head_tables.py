"""What heads are worth, as tables: in a terminal, and as HTML that needs no script."""

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Group
from rich.style import Style
from rich.table import Table
from rich.text import Text

from attlas.views.colours import DARK, LIGHT, RGB, Theme, background, css, ink, strength
from attlas.views.fragment import MONO, QUIET, as_text, card
from attlas.views.fragment import notes as note_lines
from attlas.views.terminal import notes
from attlas.views.units import visible

Payload = Mapping[str, Any]
_TOP = 8  # heads that are listed by name
_FAINT = 0.06  # below this share of the largest a cell keeps the terminal's own colours
_PLAIN = "text-align:right;padding:1px 6px"


def render_heads(payload: Payload) -> Group:
    """The curves, the heads of each ranking, and the notes."""
    parts: list[Any] = [Text(visible(f"{payload['method']} on {payload['model']}"), style="dim")]
    for chart in payload["charts"]:
        parts += [Text(), Text(f"accuracy in %, by {chart['axis']}")]
        parts += [_filled(chart_cells(chart)), Text(), _filled(area_cells(chart))]
    for importance in payload["importances"]:
        parts += [Text(), *_importance(importance, whole=not payload["charts"])]
    return Group(*parts, *notes(payload), Text(), Text(payload["reading"], style="dim"))


def render_redundancy(payload: Payload) -> Group:
    """The heads that attend most alike, and the notes."""
    table = _filled(nearest_cells(payload))
    asked = Text(visible(f"heads that attend alike, on {payload['model']}"), style="dim")
    reading = Text(payload["reading"], style="dim")
    return Group(asked, Text(), table, *notes(payload), Text(), reading)


def heads_fragment(payload: Payload) -> str:
    """The curves as a table, the first ranking as a heat map, and the notes, as HTML."""
    model, method = as_text(payload["model"]), as_text(payload["method"])
    parts = [f'<div style="{QUIET}">{model} · {method}</div>']
    for chart in payload["charts"]:
        parts.append(f'<div style="{QUIET}">accuracy in %, by {as_text(chart["axis"])}</div>')
        parts += [_html_table(_bare(each(chart))) for each in (chart_cells, area_cells)]
    for importance in payload["importances"][:1]:
        parts.append(f'<div style="{QUIET}">heads by {as_text(importance["by"])}</div>')
        parts.append(_html_table(_heat_rows(importance)))
    return card([*parts, *note_lines(payload)])


def redundancy_fragment(payload: Payload) -> str:
    """The heads that attend most alike, as HTML."""
    heading = f'<div style="{QUIET}">{as_text(payload["model"])} · heads that attend alike</div>'
    table = _html_table(_bare(nearest_cells(payload)))
    return card([heading, table, *note_lines(payload)])


def nearest_cells(payload: Payload) -> list[list[str]]:
    """The pairs that attend most alike, as rows of text."""
    head = ["one head", "another", "bits apart"]
    return [
        head,
        *([each["one"], each["other"], f"{each['distance']:.4f}"] for each in payload["nearest"]),
    ]


def chart_cells(chart: Payload) -> list[list[str]]:
    """The curves as rows of text: accuracy in per cent at each place."""
    rows = [["", *chart["labels"]]]
    for curve in chart["curves"]:
        points = [f"{100 * point['accuracy']['mean']:.0f}" for point in curve["points"]]
        rows.append([visible(curve["name"]), *points])
    return rows


def area_cells(chart: Payload) -> list[list[str]]:
    """The means of the curves as rows of text, and what they are beyond random."""
    head = ["", "mean of the curve", "beyond random"]
    rows = [
        [visible(each["name"]), _percent(each["area"], ""), _ahead(each)]
        for each in chart["curves"]
    ]
    return [head, *rows] if any(row[-1] for row in rows) else [row[:-1] for row in (head, *rows)]


def _ahead(curve: Payload) -> str:
    return _percent(curve["ahead"], "+") if curve["ahead"] else ""


def _percent(mean: Payload, sign: str) -> str:
    low, high = 100 * mean["low"], 100 * mean["high"]
    return f"{100 * mean['mean']:{sign}.1f} ({low:.1f} to {high:.1f})"


def _filled(cells: list[list[str]]) -> Table:
    head, *rows = cells
    table = _table(head)
    for row in rows:
        table.add_row(*map(Text, row))
    return table


def _table(head: Any) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0))
    for number, name in enumerate(head):
        table.add_column(name, justify="right" if number else "left", overflow="fold")
    return table


def _importance(importance: Payload, whole: bool) -> Iterator[Any]:
    yield Text(f"heads by {importance['by']}")
    if whole:
        yield from _grid(importance)
        yield Text("in per cent of the largest", style="dim")
    ranked = sorted(_every(importance), key=lambda each: each["rank"])[:_TOP]
    lines = [
        f"{each['site']} {each['head']}: {each['importance']:.3g} "
        f"({each['low']:.3g} to {each['high']:.3g})"
        for each in (ranked if whole else ranked[:3])
    ]
    yield Text("\n".join(lines) if whole else ", ".join(lines))


def _grid(importance: Payload) -> Iterator[Text]:
    top, signed, width = _limit(importance), _signed(importance), _width(importance)
    for site in importance["sites"]:
        line = Text(f"{site['name']:<{width}}", no_wrap=True)
        for each in site["heads"]:
            share = strength(each["importance"], top)
            look = Style()
            if abs(share) >= _FAINT:
                paper = background(share, signed, DARK)
                look = Style(color=css(ink(paper, DARK)), bgcolor=css(paper))
            line.append(f"{100 * share:4.0f} ", style=look)
        yield line


def _every(importance: Payload) -> list[Payload]:
    return [each for site in importance["sites"] for each in site["heads"]]


def _limit(importance: Payload) -> float:
    return max(abs(float(each["importance"])) for each in _every(importance))


def _signed(importance: Payload) -> bool:
    return any(each["importance"] < 0 for each in _every(importance))


def _width(importance: Payload) -> int:
    return max(len(site["name"]) for site in importance["sites"]) + 2


def _bare(rows: list[list[str]]) -> list[list[tuple[str, str]]]:
    return [[(cell, "") for cell in row] for row in rows]


def _heat_rows(importance: Payload) -> list[list[tuple[str, str]]]:
    top, signed = _limit(importance), _signed(importance)
    return [
        [(site["name"], "")]
        + [
            (f"{each['importance']:.2g}", _look(strength(each["importance"], top), signed, LIGHT))
            for each in site["heads"]
        ]
        for site in importance["sites"]
    ]


def _look(share: float, signed: bool, theme: Theme) -> str:
    paper: RGB = background(share, signed, theme)
    return f"background-color:{css(paper)};color:{css(ink(paper, theme))}"


def _html_table(rows: list[list[tuple[str, str]]]) -> str:
    body = "".join(
        '<tr style="background:none">'
        + "".join(f'<td style="{_PLAIN};{look}">{as_text(cell)}</td>' for cell, look in row)
        + "</tr>"
        for row in rows
    )
    return (
        f'<table style="{MONO};font-size:12px;border-collapse:collapse;margin:8px 0">{body}</table>'
    )
