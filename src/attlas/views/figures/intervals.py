"""Figures with their intervals, one row each: methods, verdicts, measures, triggers, trials."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.transforms import ScaledTranslation

from attlas.errors import UnknownNameError, UsageError
from attlas.views import report_words
from attlas.views.figures import figure
from attlas.views.figures.paper import (
    INK,
    PLAIN,
    QUIET,
    RULE,
    SMALL,
    TINTS,
    Room,
    cut,
    name_ticks,
    quiet_axes,
    say,
    shorten,
    widest,
    write,
)
from attlas.views.figures.trials import chosen_trial

Payload = Mapping[str, Any]
FAMILY_TINTS = {"W": TINTS[0], "V": TINTS[1], "P": TINTS[2], "reference": TINTS[3]}
_PITCH = 0.165  # inches from row to row
_SHAPES = "os^Dv"
_KEY = 0.19  # inches from one name of a key to the next


@dataclass(frozen=True)
class Row:
    """A label, and figures with intervals; each has a mark that it is compared with, or None."""

    label: str
    figures: Sequence[Payload]
    marks: Sequence[float | int | None] = ()
    tint: str = TINTS[0]


@figure("report", "methods")
def methods(room: Room, payload: Payload, *, removal: str | None = None) -> Any:
    """How much of what matters each method finds: 0 is a random order, 1 the best one."""
    removals = list(dict.fromkeys(each["removal"] for each in payload["standings"]))
    if not removals:
        raise UsageError("this report does not say how much each method finds")
    if removal is not None and removal not in removals:
        raise UnknownNameError("removal", removal, removals)
    shown = [removal] if removal else removals[: len(_SHAPES)]
    rows = []
    for method, family, own in report_words.standing_rows(payload):
        by_removal = {each["removal"]: each["figure"] for each in own}
        figures = [by_removal.get(each, {"value": None}) for each in shown]
        rows.append(Row(shorten(method, 28), figures, tint=FAMILY_TINTS.get(family, QUIET)))
    families = {family for _, family, _ in report_words.standing_rows(payload)}
    words = {"W": "weights", "V": "values", "P": "propagation"}
    known = [name for name in report_words.FAMILIES if name in families]
    key = [(words.get(name, name), FAMILY_TINTS.get(name, QUIET)) for name in known]
    names = [shorten(each) for each in shown] if len(shown) > 1 else []
    return draw_rows(room, rows, "share of what matters that is found", names, key)


@figure("report", "verdict")
def verdict(room: Room, payload: Payload) -> Any:
    """The figures that the verdict rests on, with their thresholds, for each removal."""
    rows = [
        Row(f"{shorten(removal, 12)}: {shorten(label, 34)}", [figure], [mark])
        for removal, bounds in payload["verdict"]["bounds"].items()
        for label, figure, mark in report_words.bound_rows(payload, bounds)
    ]
    title = shorten(payload["verdict"]["word"])
    return draw_rows(room, rows, "share of what matters; ◇ the threshold", [], [], title)


@figure("report", "unusual")
def unusual(room: Room, payload: Payload) -> Any:
    """How often a text without some tokens is stranger to the model than usual ones."""
    rows = [Row(shorten(each["removal"]), [each["figure"]], [0.5]) for each in payload["unusual"]]
    return draw_rows(room, rows, "how often it is stranger; ◇ no more than usual", [], [])


@figure("judgement", "measures")
def measures(room: Room, payload: Payload) -> Any:
    """The value of each measure, and that of shuffled scores."""
    rows = []
    for each in payload["measured"]:
        if each["value"] is not None:
            name = f"{each['measure']} {report_words.ARROWS[each['better']]} {each['removal']}"
            rows.append(Row(shorten(name, 40), [{"value": each["value"]}], [each["shuffled"]]))
    title = shorten(payload["method"]) if "method" in payload else ""
    return draw_rows(room, rows, "figure; ◇ shuffled scores", [], [], title)


@figure("triggers", "effects")
def effects(room: Room, payload: Payload) -> Any:
    """How much accuracy each trigger takes, beyond random words, from the class it harms most."""
    rows = [
        Row(
            f"{shorten(each['text'], 28)} → {shorten(each['strongest']['label'], 14)}",
            [{**each["strongest"], "value": each["strongest"]["drop"]}],
        )
        for each in payload["triggers"]
    ]
    return draw_rows(room, rows, "accuracy lost beyond random words", [], [])


@figure("trial", "figures")
@figure("report", "trial_figures")
def trial_figures(room: Room, payload: Payload, *, trial: str | None = None) -> Any:
    """The figures of a trial; a diamond is the ceiling."""
    found = chosen_trial(payload, trial)
    rows = [
        Row(shorten(each["name"], 32), [each["figure"]], [each["ceiling"]])
        for each in found["figures"]
    ]
    return draw_rows(room, rows, "mean over texts; ◇ the ceiling", [], [], shorten(found["name"]))


def draw_rows(
    room: Room,
    rows: Sequence[Row],
    axis: str,
    names: Sequence[str],
    key: Sequence[tuple[str, str]],
    title: str = "",
) -> Any:
    """A row for each label: dots with intervals, diamonds for what they are compared with.

    `names` are those of several figures in a row, `key` says what the colours mean.
    """
    if not rows:
        raise UsageError("there is nothing to draw: no figures were computed")
    labels = [row.label for row in rows]
    labels = [cut(label, 0.58 * room.width) for label in labels]
    left = widest(labels) + 0.12
    legend = 0.17 * (bool(names) + bool(key))
    margins = {"left": left, "right": 0.08, "bottom": 0.36 + legend, "top": 0.2 if title else 0.06}
    axes = room.axes(_PITCH * len(rows), **margins)
    for place, row in enumerate(rows):
        axes.axhline(place, color="#eceae4", linewidth=0.5, zorder=0)
        _draw_figures(axes, place, row)
    axes.set_ylim(len(rows) - 0.5, -0.5)
    low, high = axes.get_xlim()
    if low <= 0 <= high:
        axes.axvline(0, color=RULE, linewidth=0.6, zorder=0)
    quiet_axes(axes, "bottom")
    axes.locator_params(axis="x", nbins=5)
    name_ticks(axes, "y", labels, _PITCH)
    axes.tick_params(axis="y", length=0)
    say(axes, title=title)
    axes.set_xlabel(axis, size=SMALL, color=QUIET, labelpad=3, loc="right", **PLAIN)
    _draw_keys(axes, names, key)
    return axes


def _draw_figures(axes: Any, place: int, row: Row) -> None:
    count = len(row.figures)
    for number, each in enumerate(row.figures):
        if each["value"] is None:
            continue
        y = place + (number - (count - 1) / 2) * 0.26
        low, high = each.get("low"), each.get("high")
        if low is not None and high is not None:
            axes.plot([low, high], [y, y], color=row.tint, linewidth=0.9, solid_capstyle="butt")
        shape = _SHAPES[number % len(_SHAPES)]
        axes.plot([each["value"]], [y], shape, color=row.tint, markersize=3.2, markeredgewidth=0)
    for y, mark in zip([place] * len(row.marks), row.marks, strict=True):
        if mark is not None:
            look = {"markersize": 3.6, "markerfacecolor": "white", "markeredgecolor": INK}
            axes.plot([mark], [y], "D", markeredgewidth=0.7, **look)


def _draw_keys(axes: Any, names: Sequence[str], key: Sequence[tuple[str, str]]) -> None:
    """What the shapes and the colours mean, below the axis and from the left end of the figure."""
    root = axes.get_figure(root=True)
    below = axes.transAxes
    entries = [
        [(_SHAPES[place], QUIET, name) for place, name in enumerate(names)],
        [("s", tint, name) for name, tint in key],
    ]
    drop = 0.36
    for line in filter(None, entries):
        drop += 0.15
        wide = sum(widest([name]) + _KEY for _, _, name in line)
        box = axes.get_window_extent()
        x = max(float(box.width / root.dpi) - wide, 0.06 - float(box.x0 / root.dpi))
        for shape, tint, name in line:
            move = ScaledTranslation(x, -drop + 0.05, root.dpi_scale_trans)
            look = {"transform": below + move, "clip_on": False, "markersize": 3.4}
            axes.plot([0], [0], shape, color=tint, markeredgewidth=0, **look)
            shifted = below + ScaledTranslation(x + 0.07, -drop + 0.05, root.dpi_scale_trans)
            write(axes, 0, 0, name, color=QUIET, transform=shifted, va="center", size=SMALL)
            x += widest([name]) + _KEY
