"""Curves: what happens as tokens go, or as heads are switched off."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np

from attlas.errors import UnknownNameError, UsageError
from attlas.views.figures import figure
from attlas.views.figures.paper import (
    QUIET,
    TINTS,
    Room,
    quiet_axes,
    say,
    shorten,
    widest,
    write,
)

Payload = Mapping[str, Any]
_HEIGHT = 1.8
_DASHES = ("-", (0, (4, 1.5)), (0, (1, 1)), (0, (5, 1, 1, 1)))
_NAMED = 0.13  # inches from one name of a line to the next


@dataclass(frozen=True)
class Drawn:
    """A line over places, with the ends of its interval where they are known."""

    name: str
    x: Sequence[float | int | None]
    y: Sequence[float | int | None]
    low: Sequence[float | int | None] | None
    high: Sequence[float | int | None] | None
    tint: str
    dash: Any = "-"


@figure("report", "curves")
def curves(
    room: Room,
    payload: Payload,
    *,
    measure: str | None = None,
    removal: str | None = None,
    methods: Sequence[str] | None = None,
) -> Any:
    """What the model says as more and more tokens go, in the order of each method.

    Unless methods are named: the weights of the verdict, the best of each other family by its
    standing, and the controls.
    """
    panel = _panel(payload, measure, removal)
    lines = {line["method"]: line for line in panel["lines"]}
    chosen = list(methods) if methods is not None else _telling(payload, lines)
    for each in chosen:
        if each not in lines:
            raise UnknownNameError("method", each, lines)
    tints = iter(TINTS * len(lines))
    drawn, grey = [], 0
    for each in chosen:
        line, control = lines[each], lines[each]["family"] == "control"
        tint, dash = (QUIET, _DASHES[grey % len(_DASHES)]) if control else (next(tints), "-")
        grey += control
        values = (line["mean"], line["low"], line["high"])
        drawn.append(Drawn(shorten(each), panel["places"], *values, tint, dash))
    better = {"higher": "more is better", "lower": "less is better"}[panel["better"]]
    title = f"{panel['measure']}, {panel['removal']}: {better}"
    return draw_lines(room, drawn, (shorten(panel["axis"], 48), ""), title)


@figure("heads", "curves")
def head_curves(room: Room, payload: Payload, *, chart: int = 0) -> Any:
    """The accuracy of the model as its heads are switched off, by each ranking."""
    charts = payload["charts"]
    if not -len(charts) <= chart < len(charts):
        raise UsageError(f"no chart {chart}: there are {len(charts)} with curves")
    drawn = []
    tints = iter(TINTS * len(charts[chart]["curves"]))
    for curve in charts[chart]["curves"]:
        points = curve["points"]
        places = [each["place"] for each in points]
        mean, low, high = (
            [each["accuracy"][end] for each in points] for end in ("mean", "low", "high")
        )
        tint = QUIET if curve["name"] == "random" else next(tints)
        drawn.append(Drawn(shorten(curve["name"]), places, mean, low, high, tint))
    return draw_lines(room, drawn, (charts[chart]["axis"], "accuracy"), "")


def _panel(payload: Payload, measure: str | None, removal: str | None) -> Payload:
    panels = payload["panels"]
    if not panels:
        raise UsageError("this report has no curves")
    measures = list(dict.fromkeys(each["measure"] for each in panels))
    if measure is not None and measure not in measures:
        raise UnknownNameError("measure with curves", measure, measures)
    own = [each for each in panels if each["measure"] == (measure or measures[0])]
    removals = [each["removal"] for each in own]
    if removal is not None and removal not in removals:
        raise UnknownNameError("removal", removal, removals)
    chosen: Payload = own[removals.index(removal) if removal is not None else 0]
    return chosen


def _telling(payload: Payload, lines: Mapping[str, Payload]) -> list[str]:
    """The verdict's method, the best of each other family, and the controls."""
    found: dict[str, list[float]] = {}
    for each in payload["standings"]:
        if each["figure"]["value"] is not None:
            found.setdefault(each["method"], []).append(each["figure"]["value"])
    worth = {name: float(np.mean(values)) for name, values in found.items()}
    best: dict[str, str] = {}
    for name, line in lines.items():
        family = line["family"]
        if family not in best or worth.get(name, -9.0) > worth.get(best[family], -9.0):
            best[family] = name
    own = payload["verdict"]["method"]
    if own in lines:
        best[lines[own]["family"]] = own
    controls = [name for name, line in lines.items() if line["family"] == "control"]
    return [name for family, name in best.items() if family != "control"] + controls


def draw_lines(room: Room, lines: Sequence[Drawn], names: tuple[str, str], title: str) -> Any:
    """Lines with their intervals; their names stand below, in their colours."""
    columns = max(1, int(room.width / (widest(line.name for line in lines) + 0.42)))
    rows = -(-len(lines) // columns) if len(lines) > 1 else 0
    left = 0.5 if names[1] else 0.36
    below = 0.4 + _NAMED * rows
    axes = room.axes(_HEIGHT, left=left, right=0.1, bottom=below, top=0.2 if title else 0.06)
    for line in lines:
        x, y = _floats(line.x), _floats(line.y)
        if line.low is not None and line.high is not None:
            ends = _floats(line.low), _floats(line.high)
            axes.fill_between(x, *ends, color=line.tint, alpha=0.15, linewidth=0)
        axes.plot(x, y, color=line.tint, linewidth=1.1, linestyle=line.dash)
    quiet_axes(axes, "left", "bottom")
    axes.locator_params(nbins=5)
    say(axes, x=names[0], y=names[1], title=title)
    if rows:
        _draw_names(axes, lines, columns, room.width, left)
    return axes


def _draw_names(axes: Any, lines: Sequence[Drawn], columns: int, width: float, left: float) -> None:
    root = axes.get_figure(root=True)
    box = axes.get_window_extent()
    across, high = box.width / root.dpi, box.height / root.dpi
    for place, line in enumerate(lines):
        row, column = divmod(place, columns)
        x = (column * (width - 0.1) / columns + 0.05 - left) / across
        y = -(0.45 + _NAMED * row) / high
        look = {"transform": axes.transAxes, "clip_on": False}
        ends = [x, x + 0.2 / across]
        axes.plot(ends, [y, y], color=line.tint, linewidth=1.3, linestyle=line.dash, **look)
        write(axes, x + 0.25 / across, y, line.name, va="center", transform=axes.transAxes)


def _floats(values: Sequence[float | int | None]) -> Any:
    return np.array([np.nan if each is None else each for each in values], dtype=float)
