"""A tree of attention: from the token that is read, down through the layers."""

from collections.abc import Mapping
from typing import Any

from matplotlib.patches import PathPatch
from matplotlib.path import Path

from attlas.views.colours import LIGHT, css
from attlas.views.figures import figure
from attlas.views.figures.paper import INK, LINE, QUIET, RULE, SMALL, Room, say, widest, write
from attlas.views.tree_drawing import DOTS, colour_of, draw_tree, segments_of, thickness

Payload = Mapping[str, Any]
_POINTS = 8.0  # the smallest text of a drawing at its natural size


@figure("tree", "tree")
def tree(room: Room, payload: Payload) -> Any:
    """The tree as on its page; one that is too wide lies on its side, a line for each token."""
    drawing = payload["drawing"]
    scale = min(1.0, room.width * DOTS / drawing["width"])
    if _POINTS * scale < SMALL:
        return _lying(room, payload)
    wide, high = drawing["width"] / DOTS * scale, drawing["height"] / DOTS * scale
    axes = room.axes(high, right=room.width - wide)
    axes.set(xlim=(0, drawing["width"]), ylim=(drawing["height"], 0))
    axes.set_axis_off()
    draw_tree(axes, payload, scale)
    return axes


def _lying(room: Room, payload: Payload) -> Any:
    """The root at the left; each token has a line, in text order, and a dot at its layer."""
    boxes = sorted(payload["drawing"]["boxes"], key=lambda box: box["position"])
    rows = {box["position"]: row for row, box in enumerate(boxes)}
    layers = [row["layer"] for row in payload["drawing"]["layers"]]
    columns = {layer: number for number, layer in enumerate(layers)}
    layer_of = {box["position"]: box["layer"] for box in boxes}
    right = widest(box["label"] for box in boxes) + 0.14
    axes = room.axes(LINE * 1.1 * len(boxes), left=0.12, right=right, bottom=0.32, top=0.05)
    axes.set(xlim=(0, max(1, len(layers) - 1)), ylim=(len(boxes) - 0.5, -0.5))
    top = max((edge["attribution"] for edge in payload["edges"]), default=0.0)
    for edge in payload["edges"]:
        start = columns[layer_of[edge["parent"]]], rows[edge["parent"]]
        end = columns[layer_of[edge["child"]]], rows[edge["child"]]
        _draw_edge(axes, start, end, 0.6 * thickness(edge, top))
    segments = segments_of(payload)
    for box in boxes:
        x, y = columns[box["layer"]], rows[box["position"]]
        hue = css(colour_of(box["segment"], segments, LIGHT))
        ends = [x, len(layers) - 1 or 1]
        axes.plot(ends, [y, y], ":", color=RULE, linewidth=0.5, zorder=0)
        look = {"color": QUIET if box["special"] else hue, "markersize": 3.5, "clip_on": False}
        axes.plot([x], [y], "o", **look)
        ink = QUIET if box["special"] else INK
        write(axes, (len(layers) - 1 or 1), y, f"  {box['label']}", va="center", color=ink)
    axes.set_xticks(range(len(layers)), [_layer(each, payload) for each in layers], size=SMALL)
    axes.set_yticks([])
    axes.spines[:].set_visible(False)
    axes.tick_params(length=0, labelcolor=QUIET, labelsize=SMALL)
    say(axes, x="layer")
    return axes


def _layer(layer: int, payload: Payload) -> str:
    return "" if layer == payload["layers"] else str(layer)


def _draw_edge(axes: Any, start: tuple[int, int], end: tuple[int, int], width: float) -> None:
    middle = (start[0] + end[0]) / 2
    points = [start, (middle, start[1]), (middle, end[1]), end]
    path = Path(points, [Path.MOVETO, *[Path.CURVE4] * 3])
    axes.add_patch(PathPatch(path, fill=False, edgecolor=RULE, linewidth=width, zorder=1))
