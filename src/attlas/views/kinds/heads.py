"""The importance of heads as tables, and the accuracy of a model as heads are switched off."""

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Group
from rich.style import Style
from rich.text import Text

from attlas.views.colours import DARK, LIGHT, RGB, Theme, background, css, ink, strength
from attlas.views.markup import QUIET, as_text, card, html_table, plain_table, question
from attlas.views.markup import notes as note_lines
from attlas.views.terminal import notes, text_table
from attlas.views.units import head_name, layer_names, visible

Payload = Mapping[str, Any]
_TOP = 8  # heads listed by name
_FAINT = 0.06  # a cell below this share of the largest keeps the terminal's colours


def render(payload: Payload) -> Group:
    """The curves, the heads of each ranking, and the notes."""
    parts: list[Any] = [Text(visible(f"{payload['method']} on {payload['model']}"), style="dim")]
    for chart in payload["charts"]:
        parts += [Text(), Text(f"accuracy in %, by {chart['axis']}")]
        parts += [text_table(chart_cells(chart)), Text(), text_table(area_cells(chart))]
    for importance in payload["importances"]:
        parts += [Text(), *_importance(importance, whole=not payload["charts"])]
    return Group(*parts, *notes(payload), Text(), Text(payload["reading"], style="dim"))


def fragment(payload: Payload) -> str:
    """The curves as a table, the first ranking as a heat map, and the notes, as HTML."""
    model, method = as_text(payload["model"]), as_text(payload["method"])
    parts = [question(payload, f"{model} · {method}")]
    for chart in payload["charts"]:
        parts.append(f'<div style="{QUIET}">accuracy in %, by {as_text(chart["axis"])}</div>')
        parts += [plain_table(each(chart)) for each in (chart_cells, area_cells)]
    for importance in payload["importances"][:1]:
        told = f"heads by {as_text(importance['by'])}, in per cent of the largest"
        parts.append(f'<div style="{QUIET}">{told}</div>')
        parts.append(html_table(_heat_rows(importance)))
    return card([*parts, *note_lines(payload)])


def chart_cells(chart: Payload) -> list[list[str]]:
    """The curves as rows of text: accuracy in per cent at each point."""
    rows = [["", *chart["labels"]]]
    for curve in chart["curves"]:
        points = [f"{100 * point['accuracy']['mean']:.0f}" for point in curve["points"]]
        rows.append([visible(curve["name"]), *points])
    return rows


def area_cells(chart: Payload) -> list[list[str]]:
    """The means of the curves as rows of text, and their lead over a random ranking."""
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


def _importance(importance: Payload, whole: bool) -> Iterator[Any]:
    yield Text(f"heads by {importance['by']}")
    if whole:
        yield from _grid(importance)
        yield Text("in per cent of the largest", style="dim")
    ranked = sorted(_every(importance), key=lambda each: each["rank"])[:_TOP]
    named = _named(importance)
    lines = [
        f"{head_name(named[each['site']], each['head'])}: {each['importance']:.3g} "
        f"({each['low']:.3g} to {each['high']:.3g})"
        for each in (ranked if whole else ranked[:3])
    ]
    yield Text("\n".join(lines) if whole else ", ".join(lines))


def _grid(importance: Payload) -> Iterator[Text]:
    top, signed, named = _limit(importance), _signed(importance), _named(importance)
    width = max(map(len, named.values())) + 2
    yield Text(f"{'head':<{width}}" + "".join(f"{n:4} " for n in _numbers(importance)), style="dim")
    for site in importance["sites"]:
        line = Text(f"{named[site['name']]:<{width}}", no_wrap=True)
        for each in site["heads"]:
            share = strength(each["importance"], top)
            look = Style()
            if abs(share) >= _FAINT:
                paper = background(share, signed, DARK)
                look = Style(color=css(ink(paper, DARK)), bgcolor=css(paper))
            line.append(f"{100 * share:4.0f} ", style=look)
        yield line


def _numbers(importance: Payload) -> range:
    """The numbers of the heads, as many as the site with most of them has."""
    return range(max(len(site["heads"]) for site in importance["sites"]))


def _every(importance: Payload) -> list[Payload]:
    return [each for site in importance["sites"] for each in site["heads"]]


def _limit(importance: Payload) -> float:
    return max(abs(float(each["importance"])) for each in _every(importance))


def _signed(importance: Payload) -> bool:
    return any(each["importance"] < 0 for each in _every(importance))


def _named(importance: Payload) -> dict[str, str]:
    """What readers call each site."""
    return layer_names(site["name"] for site in importance["sites"])


def _heat_rows(importance: Payload) -> list[list[tuple[str, str]]]:
    top, signed, named = _limit(importance), _signed(importance), _named(importance)
    rows = [[("head", QUIET), *((str(number), QUIET) for number in _numbers(importance))]]
    for site in importance["sites"]:
        shares = [strength(each["importance"], top) for each in site["heads"]]
        cells = [(f"{100 * share:.0f}", _look(share, signed, LIGHT)) for share in shares]
        rows.append([(named[site["name"]], ""), *cells])
    return rows


def _look(share: float, signed: bool, theme: Theme) -> str:
    paper: RGB = background(share, signed, theme)
    return f"background-color:{css(paper)};color:{css(ink(paper, theme))}"
