"""The plots of trials: points, lines, bars, matrices, maps side by side, and tables."""

from collections.abc import Mapping
from typing import Any

import numpy as np

from attlas.errors import UnknownNameError, UsageError
from attlas.views.figures import figure
from attlas.views.figures.curves import Drawn, draw_lines
from attlas.views.figures.heads import mosaic
from attlas.views.figures.matrix import table
from attlas.views.figures.paper import (
    QUIET,
    RULE,
    TINTS,
    Room,
    cut,
    image_of,
    name_ticks,
    quiet_axes,
    say,
    shorten,
    widest,
    write,
)

Payload = Mapping[str, Any]
Place = tuple[float, float]
_HEIGHT, _PITCH = 1.7, 0.17


@figure("trial", "trial")
@figure("report", "trial")
def trial(
    room: Room, payload: Payload, *, trial: str | None = None, plot: int | str | None = None
) -> Any:
    """A plot of a trial, by its number or its title; the first one if none is named."""
    found = chosen_trial(payload, trial)
    if not found["plots"]:
        raise UsageError(f"the trial {found['name']} has no plots")
    return _draw_one(room, found, plot)


@figure("study", "plot")
def study_plot(room: Room, payload: Payload, *, plot: int | str | None = None) -> Any:
    """A plot of a study, by its number or its title; the first one if none is named."""
    if not payload["plots"]:
        raise UsageError(f"the study {payload['name']} has no plots")
    return _draw_one(room, payload, plot)


def _draw_one(room: Room, found: Payload, plot: int | str | None) -> Any:
    plots = found["plots"]
    titles = [each["title"] for each in plots]
    if isinstance(plot, str) and plot not in titles:
        raise UnknownNameError("plot", plot, titles)
    number = titles.index(plot) if isinstance(plot, str) else plot or 0
    if not -len(plots) <= number < len(plots):
        raise UsageError(f"no plot {plot}: {found['name']} has {len(plots)}, the first is 0")
    chosen = plots[number]
    return _DRAWN[chosen["kind"]](room, chosen)


def chosen_trial(payload: Payload, name: str | None) -> Payload:
    """The trial of this name; the first one for None."""
    trials: dict[str, Payload] = {}
    for each in payload["trials"]:
        trials.setdefault(each["name"], each)
    if not trials:
        raise UsageError("this report has no trials")
    if name is not None and name not in trials:
        raise UnknownNameError("trial", name, trials)
    return trials[name or next(iter(trials))]


def _scatter(room: Room, plot: Payload) -> Any:
    several = len(plot["groups"]) > 1
    axes = room.axes(_HEIGHT, left=0.5, right=0.08, bottom=0.36, top=0.36 if several else 0.2)
    for number, group in enumerate(plot["groups"]):
        look = {"s": 7, "color": TINTS[number % len(TINTS)], "alpha": 0.65, "linewidths": 0}
        pairs = zip(group["x"], group["y"], strict=True)
        points = [(x, y) for x, y in pairs if x is not None and y is not None]
        axes.scatter(*np.array(points, dtype=float).reshape(-1, 2).T, label=group["name"], **look)
    _framed(axes, plot)
    arrows = arrow_ends(plot)
    for name, start, end in arrows:
        axes.annotate("", end, start, arrowprops={"arrowstyle": "->", "color": QUIET, "lw": 0.6})
        _name_end(axes, shorten(name), end)
    if several and not arrows:
        _name_groups(axes, [shorten(group["name"]) for group in plot["groups"]])
    return axes


def _name_end(axes: Any, name: str, end: Place) -> None:
    """The name of an arrow above its end; at an edge it must not leave the picture."""
    inward = "right" if end[0] > sum(axes.get_xlim()) / 2 else "left"
    look = {"textcoords": "offset points", "ha": inward, "parse_math": False, "usetex": False}
    axes.annotate(name, end, (0, 4), **look)


def arrow_ends(plot: Payload) -> list[tuple[str, Place, Place]]:
    """The name of each arrow of a scatter plot, where it starts, and where it ends."""
    firsts = {
        group["name"]: (group["x"][0], group["y"][0])
        for group in plot["groups"]
        if group["x"] and group["x"][0] is not None and group["y"][0] is not None
    }
    start = firsts.pop(plot.get("arrows_from"), None)
    return [] if start is None else [(name, start, end) for name, end in firsts.items()]


def _name_groups(axes: Any, names: list[str]) -> None:
    """The names of groups in their colours, above the axes at the right."""
    for place, name in enumerate(reversed(names)):
        number = len(names) - 1 - place
        look = {"xycoords": "axes fraction", "textcoords": "offset points", "ha": "right"}
        shift = -sum(72 * widest([each]) + 8 for each in names[number + 1 :])
        axes.annotate(
            name,
            (1, 1),
            (shift, 14),  # above the title
            color=TINTS[number % len(TINTS)],
            parse_math=False,
            usetex=False,
            **look,
        )


def _framed(axes: Any, plot: Payload) -> Any:
    quiet_axes(axes, "left", "bottom")
    axes.locator_params(nbins=5)
    title = shorten(plot["title"], 48)
    say(axes, x=shorten(plot["x_label"], 48), y=shorten(plot["y_label"], 32), title=title)
    return axes


def _curve(room: Room, plot: Payload) -> Any:
    lines = [
        Drawn(shorten(line["name"]), plot["x"], line["y"], line["low"], line["high"], tint)
        for line, tint in zip(plot["lines"], TINTS * len(plot["lines"]), strict=False)
    ]
    names = (shorten(plot["x_label"], 48), shorten(plot["y_label"], 32))
    return draw_lines(room, lines, names, shorten(plot["title"], 48))


def _bars(room: Room, plot: Payload) -> Any:
    labels = [cut(shorten(bar["name"], 40), 0.58 * room.width) for bar in plot["bars"]]
    left = widest(labels) + 0.12
    high = _PITCH * max(1, len(labels))
    axes = room.axes(high, left=left, right=0.08, bottom=0.36, top=0.2)
    for place, bar in enumerate(plot["bars"]):
        if bar["value"] is not None:
            axes.barh(place, bar["value"], height=0.7, color=TINTS[0])
        if bar["low"] is not None and bar["high"] is not None:
            axes.plot([bar["low"], bar["high"]], [place, place], color=QUIET, linewidth=1)
    axes.set_ylim(len(labels) - 0.5, -0.5)
    quiet_axes(axes, "bottom")
    axes.locator_params(axis="x", nbins=5)
    name_ticks(axes, "y", labels, _PITCH)
    axes.tick_params(axis="y", length=0)
    say(axes, x=shorten(plot["x_label"], 48), title=shorten(plot["title"], 48))
    return axes


def _violins(room: Room, plot: Payload) -> Any:
    axes = room.axes(_HEIGHT, left=0.5, right=0.08, bottom=0.36, top=0.2)
    for place, group in enumerate(plot["groups"]):
        if not group["count"]:
            continue
        half = 0.42 * np.array(group["widths"], dtype=float)
        tint = TINTS[place % len(TINTS)]
        axes.fill_betweenx(group["places"], place - half, place + half, color=tint, alpha=0.3)
        low, first, median, last, high = group["marks"]
        axes.plot([place, place], [low, high], color=QUIET, linewidth=0.8)
        axes.plot([place, place], [first, last], color=tint, linewidth=4)
        axes.plot([place], [median], "o", color="white", markersize=3, markeredgecolor=tint)
    axes.set_xlim(-0.5, max(1, len(plot["groups"])) - 0.5)
    _framed(axes, plot)
    names = [shorten(group["name"]) for group in plot["groups"]]
    axes.set_xticks(range(len(names)), names, parse_math=False, usetex=False)
    return axes


def _matrix(room: Room, plot: Payload) -> Any:
    values = np.array(plot["values"], dtype=float).reshape(len(plot["rows"]), len(plot["columns"]))
    rows, columns = ([shorten(each) for each in plot[side]] for side in ("rows", "columns"))
    signed = bool(np.nanmin(values, initial=0.0) < 0)
    names = (shorten(plot["x_label"], 48), shorten(plot["y_label"], 32))
    return table(room, values, rows, columns, signed, names, shorten(plot["title"], 48))


def _maps(room: Room, plot: Payload) -> Any:
    """Maps of the same tokens side by side, on one scale."""
    size = max(len(plot["rows"]), len(plot["columns"]), 1)
    cells = [np.array(each["values"], dtype=float) for each in plot["maps"]]
    sheet = mosaic([cells], len(cells), size)[: len(plot["rows"])]
    labels = [shorten(each) for each in plot["rows"]]
    left = widest(labels) + 0.12
    pitch = min((room.width - left - 0.05) / sheet.shape[1], 0.2)
    right = room.width - left - pitch * sheet.shape[1]
    axes = room.axes(pitch * len(sheet), left=left, right=right, bottom=0.2, top=0.2)
    top = float(np.nanmax(np.abs(sheet), initial=0.0))
    image_of(axes, sheet, top, bool(np.nanmin(sheet, initial=0.0) < 0))
    quiet_axes(axes)
    name_ticks(axes, "y", labels, pitch)
    middles = [number * (size + 1) + (len(plot["columns"]) - 1) / 2 for number in range(len(cells))]
    names = [shorten(each["name"]) for each in plot["maps"]]
    axes.set_xticks(middles, names, parse_math=False, usetex=False)
    axes.tick_params(length=0, pad=2)
    say(axes, title=shorten(plot["title"], 48))
    return axes


def _table(room: Room, plot: Payload) -> Any:
    cells = [plot["columns"], *([_words(cell) for cell in row] for row in plot["rows"])]
    shown = [[shorten(cell, 28) for cell in row] for row in cells]
    wide = [widest(column) + 0.14 for column in zip(*shown, strict=True)]
    ends = np.cumsum(wide) * min(1.0, room.width / sum(wide))
    axes = room.axes(_PITCH * len(shown) + 0.04, left=0, right=0, bottom=0, top=0.2)
    axes.set(xlim=(0, room.width), ylim=(len(shown) - 0.4, -0.6))
    axes.set_axis_off()
    for place, row in enumerate(shown):
        for number, cell in enumerate(row):
            side = {"ha": "right"} if number else {"ha": "left"}
            x = ends[number] - 0.04 if number else 0.0
            write(axes, x, place, cell, va="center", color=None if place else QUIET, **side)
    axes.axhline(0.5, xmax=min(1.0, ends[-1] / room.width), color=RULE, linewidth=0.6)
    say(axes, title=shorten(plot["title"], 48))
    return axes


def _words(cell: Any) -> str:
    if cell is None:
        return "–"
    return cell if isinstance(cell, str) else f"{cell:.3g}".replace("-", "−")


_DRAWN = {
    "scatter": _scatter,
    "curve": _curve,
    "bars": _bars,
    "violins": _violins,
    "matrix": _matrix,
    "maps": _maps,
    "table": _table,
}
