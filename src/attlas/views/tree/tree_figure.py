"""A tree as a file: SVG by itself, PNG and PDF where matplotlib is there."""

from collections.abc import Mapping
from io import BytesIO
from typing import Any

from attlas.errors import UsageError
from attlas.views.colours import LIGHT, css
from attlas.views.tree.tree_drawing import (
    LINE,
    QUIET,
    box_colours,
    colour_of,
    curve,
    segments_of,
    thickness,
    tree_svg,
)
from attlas.views.tree.tree_layout import BOX

ENDINGS = (".svg", ".png", ".pdf")
_DOTS = 96.0  # of a drawing's units in an inch


def tree_figure(payload: Mapping[str, Any], ending: str) -> str | bytes:
    """The drawing as a file of this ending."""
    if ending not in ENDINGS:
        raise UsageError(f"a drawing ends in {', '.join(ENDINGS)}, not {ending!r}")
    if ending == ".svg":
        return tree_svg(payload)
    try:
        from matplotlib.figure import Figure
    except ImportError as problem:
        raise UsageError(
            f"a drawing in {ending} needs matplotlib (the extra `figures`); .svg needs nothing"
        ) from problem
    drawing = payload["drawing"]
    figure = Figure((drawing["width"] / _DOTS, drawing["height"] / _DOTS), dpi=2 * _DOTS)
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, drawing["width"]), ylim=(drawing["height"], 0))
    axes.set_axis_off()
    _draw_edges(axes, payload)
    _draw_boxes(axes, payload)
    out = BytesIO()
    figure.savefig(out, format=ending[1:], facecolor=css(LIGHT.paper))
    return out.getvalue()


def _draw_edges(axes: Any, payload: Mapping[str, Any]) -> None:
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    boxes = {box["position"]: box for box in payload["drawing"]["boxes"]}
    top = max((edge["attribution"] for edge in payload["edges"]), default=0.0)
    for row in payload["drawing"]["layers"]:
        if row["layer"] != payload["layers"]:
            _write(axes, 12.0, row["y"], f"layer {row['layer']}", QUIET, 8.0, "left")
    for edge in payload["edges"]:
        one, other = boxes[edge["parent"]], boxes[edge["child"]]
        width = thickness(edge, top) * 72 / _DOTS
        x, y, end, turn, below = curve(one, other)
        middle = (y + turn) / 2
        points = [(x, y), (x, middle), (end, middle), (end, turn), (end, below)]
        line = Path(points, [Path.MOVETO, *[Path.CURVE4] * 3, Path.LINETO])
        axes.add_patch(PathPatch(line, fill=False, ec=LINE, lw=width, zorder=1))


def _draw_boxes(axes: Any, payload: Mapping[str, Any]) -> None:
    from matplotlib.patches import FancyBboxPatch

    segments = segments_of(payload)
    for box in payload["drawing"]["boxes"]:
        edge, fill, ink = box_colours(box, colour_of(box["segment"], segments, LIGHT))
        corner = (box["x"] - box["width"] / 2, box["y"] - BOX / 2)
        style = "round,pad=0,rounding_size=5"
        patch = FancyBboxPatch(corner, box["width"], BOX, style, fc=fill, ec=edge, zorder=2)
        axes.add_patch(patch)
        _write(axes, box["x"], box["y"], box["label"], ink, 9.5, "center")


def _write(
    axes: Any, across: float, down: float, words: str, ink: str, size: float, side: str
) -> None:
    made = axes.text(across, down, words, color=ink, size=size, ha=side, va="center", zorder=3)
    made.set(family="monospace", parse_math=False)
