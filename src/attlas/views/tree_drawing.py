"""The drawing of a tree: where its tokens are, and the drawing as SVG, PNG or PDF.

Tokens go across in text order and down by layer; the root is above the middle of the others.
"""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from io import BytesIO
from typing import Any

from rich.cells import cell_len

from attlas.errors import UsageError
from attlas.views.colours import LIGHT, RGB, Theme, css, strength
from attlas.views.terminal import fit
from attlas.views.units import score_text, token_places, visible

SIGN, STORY = 8.0, 68.0  # the width of a character, the height of a layer
BOX = 26.0  # the height of a token's box
_STEP, _GAP, _PAD, _MARGIN, _SIDE = 30.0, 10.0, 16.0, 12.0, 84.0
_LONGEST = 18  # characters of a label
_WIDE = 900.0  # up to this width each token has its own column, so that no edge runs behind it
QUIET = "#66625a"
LINE = "#b3afa5"
_FONT = "ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace"
ENDINGS = (".svg", ".png", ".pdf")
DOTS = 96.0  # units of a drawing in an inch


def lay_out_tree(tokens: Sequence[Mapping[str, Any]], nodes: Mapping[int, int]) -> dict[str, Any]:
    """The size of the drawing, the height of each layer in it, and the box of each token.

    `nodes` maps positions of tokens to the layer that reads them; the root has the highest. Boxes
    of one layer never touch; if there is room, no boxes share a column. Empty layers are left out.
    """
    layers = sorted(set(nodes.values()), reverse=True)
    heights = {layer: _MARGIN + BOX / 2 + STORY * row for row, layer in enumerate(layers)}
    root = max(nodes, key=nodes.__getitem__)
    named = token_places(tokens)
    placed = [
        _box(tokens[place], place, nodes[place], heights[nodes[place]], named.get(place, ""))
        for place in sorted(set(nodes) - {root})
    ]
    roomy = sum(box["width"] + _GAP for box in placed) <= _WIDE
    boxes: list[dict[str, Any]] = []
    ends: dict[int, float] = {}  # where the boxes of each layer end so far
    last = _SIDE - _STEP
    for box in placed:
        taken = max(ends.values(), default=_SIDE) if roomy else ends.get(box["layer"], _SIDE)
        last = max(last + _STEP, taken + _GAP + box["width"] / 2)
        ends[box["layer"]] = last + box["width"] / 2
        boxes.append(box | {"x": last})
    top = _box(tokens[root], root, nodes[root], heights[nodes[root]])
    least = _SIDE + _GAP + top["width"] / 2
    middle = max((boxes[0]["x"] + boxes[-1]["x"]) / 2, least) if boxes else least
    return {
        "width": max([middle + top["width"] / 2, *ends.values()]) + _MARGIN,
        "height": max(heights.values()) + BOX / 2 + _MARGIN,
        "layers": [{"layer": layer, "y": height} for layer, height in heights.items()],
        "boxes": [top | {"x": middle}, *boxes],
    }


def _box(
    token: Mapping[str, Any], place: int, layer: int, height: float, which: str = ""
) -> dict[str, Any]:
    shown = visible(token["label"])
    label = fit(shown, min(cell_len(shown), _LONGEST)).rstrip()
    label += f" {which}" if which else ""
    return {
        "position": place,
        "label": label,
        "layer": layer,
        "segment": token["segment"],
        "special": token["special"],
        "y": height,
        "width": SIGN * cell_len(label) + _PAD,
    }


def segments_of(payload: Mapping[str, Any]) -> list[str]:
    """The segments of the text, in order."""
    return list(dict.fromkeys(token["segment"] for token in payload["tokens"]))


def colour_of(segment: str, segments: Sequence[str], theme: Theme) -> RGB:
    """The colour of a segment; the second text of a pair has another one."""
    return theme.favour if segments.index(segment) % 2 else theme.plain


def tree_svg(payload: Mapping[str, Any]) -> str:
    """The drawing as SVG, which loads and runs nothing."""
    drawing = payload["drawing"]
    width, height = drawing["width"], drawing["height"]
    parts = [*_layers(drawing, payload["layers"]), *_edges(payload), *_boxes(payload)]
    return (
        f'<svg xmlns="http://www.w3.org/2000/svg" width="{width:.0f}" height="{height:.0f}" '
        f'viewBox="0 0 {width:.0f} {height:.0f}" font-family="{_FONT}" font-size="13">'
        f'<rect width="100%" height="100%" fill="{css(LIGHT.paper)}"/>{"".join(parts)}</svg>'
    )


def _layers(drawing: Mapping[str, Any], root: int) -> Iterator[str]:
    for row in drawing["layers"]:
        if row["layer"] != root:
            yield (
                f'<text x="12" y="{row["y"] + 4:.1f}" font-size="11" fill="{QUIET}">'
                f"layer {row['layer']}</text>"
            )


def _edges(payload: Mapping[str, Any]) -> Iterator[str]:
    boxes = {box["position"]: box for box in payload["drawing"]["boxes"]}
    top = max((edge["attribution"] for edge in payload["edges"]), default=0.0)
    for edge in payload["edges"]:
        one, other = boxes[edge["parent"]], boxes[edge["child"]]
        told = f"layer {edge['layer']}: {score_text(edge['attribution'], top, signed=False)}"
        x, y, end, turn, below = edge_path(one, other)
        middle = (y + turn) / 2
        yield (
            f'<path d="M{x:.1f} {y:.1f}C{x:.1f} {middle:.1f} {end:.1f} {middle:.1f} '
            f'{end:.1f} {turn:.1f}V{below:.1f}" fill="none" stroke="{LINE}" '
            f'stroke-width="{thickness(edge, top):.2f}"><title>{escape(told)}</title></path>'
        )


def edge_path(
    parent: Mapping[str, Any], child: Mapping[str, Any]
) -> tuple[float, float, float, float, float]:
    """The path of an edge: start x and y, end x, the y where it turns down, and end y.

    It goes across above the next layer, and then down in the column of the child.
    """
    start, below = parent["y"] + BOX / 2, child["y"] - BOX / 2
    return parent["x"], start, child["x"], min(start + STORY - BOX, below), below


def _boxes(payload: Mapping[str, Any]) -> Iterator[str]:
    segments = segments_of(payload)
    for box in payload["drawing"]["boxes"]:
        colour = colour_of(box["segment"], segments, LIGHT)
        edge, fill, ink = box_colours(box, colour)
        yield (
            f'<rect x="{box["x"] - box["width"] / 2:.1f}" y="{box["y"] - BOX / 2:.1f}" '
            f'width="{box["width"]:.1f}" height="{BOX:.0f}" rx="5" fill="{fill}" '
            f'stroke="{edge}"/><text x="{box["x"]:.1f}" y="{box["y"] + 4.5:.1f}" '
            f'text-anchor="middle" fill="{ink}">{escape(visible(box["label"]))}</text>'
        )


def box_colours(box: Mapping[str, Any], colour: RGB) -> tuple[str, str, str]:
    """The colours of a token's box: edge, paper and ink."""
    if box["special"]:
        return LINE, css(LIGHT.paper), QUIET
    tint = tuple(round(0.88 * a + 0.12 * b) for a, b in zip(LIGHT.paper, colour, strict=True))
    return css(colour), "#{:02x}{:02x}{:02x}".format(*tint), css(LIGHT.inks[0])


def thickness(edge: Mapping[str, Any], top: float) -> float:
    """The thickness of an edge in a drawing."""
    return 1.0 + 4.0 * strength(edge["attribution"], top)


def check_ending(ending: str) -> None:
    """Refuse the ending of a file that no drawing has."""
    if ending not in ENDINGS:
        raise UsageError(f"a drawing ends in {', '.join(ENDINGS)}, not {ending!r}")


def tree_figure(payload: Mapping[str, Any], ending: str) -> str | bytes:
    """The content of a file with this ending that holds the drawing."""
    check_ending(ending)
    if ending == ".svg":
        return tree_svg(payload)
    try:
        from matplotlib.figure import Figure
    except ImportError as problem:
        raise UsageError(
            f"a drawing in {ending} needs matplotlib (the extra `figures`); .svg needs nothing"
        ) from problem
    drawing = payload["drawing"]
    figure = Figure((drawing["width"] / DOTS, drawing["height"] / DOTS), dpi=2 * DOTS)
    axes = figure.add_axes((0, 0, 1, 1), xlim=(0, drawing["width"]), ylim=(drawing["height"], 0))
    axes.set_axis_off()
    draw_tree(axes, payload)
    out = BytesIO()
    figure.savefig(out, format=ending[1:], facecolor=css(LIGHT.paper))
    return out.getvalue()


def draw_tree(axes: Any, payload: Mapping[str, Any], scale: float = 1.0) -> None:
    """Draw the tree into axes of matplotlib that show it at this scale."""
    _draw_edges(axes, payload, scale)
    _draw_boxes(axes, payload, scale)


def _draw_edges(axes: Any, payload: Mapping[str, Any], scale: float) -> None:
    from matplotlib.patches import PathPatch
    from matplotlib.path import Path

    boxes = {box["position"]: box for box in payload["drawing"]["boxes"]}
    top = max((edge["attribution"] for edge in payload["edges"]), default=0.0)
    for row in payload["drawing"]["layers"]:
        if row["layer"] != payload["layers"]:
            _write(axes, 12.0, row["y"], f"layer {row['layer']}", QUIET, 8.0 * scale, "left")
    for edge in payload["edges"]:
        one, other = boxes[edge["parent"]], boxes[edge["child"]]
        width = thickness(edge, top) * 72 / DOTS * scale
        x, y, end, turn, below = edge_path(one, other)
        middle = (y + turn) / 2
        points = [(x, y), (x, middle), (end, middle), (end, turn), (end, below)]
        line = Path(points, [Path.MOVETO, *[Path.CURVE4] * 3, Path.LINETO])
        axes.add_patch(PathPatch(line, fill=False, ec=LINE, lw=width, zorder=1))


def _draw_boxes(axes: Any, payload: Mapping[str, Any], scale: float) -> None:
    from matplotlib.patches import FancyBboxPatch

    segments = segments_of(payload)
    for box in payload["drawing"]["boxes"]:
        edge, fill, ink = box_colours(box, colour_of(box["segment"], segments, LIGHT))
        corner = (box["x"] - box["width"] / 2, box["y"] - BOX / 2)
        style = "round,pad=0,rounding_size=5"
        patch = FancyBboxPatch(corner, box["width"], BOX, style, fc=fill, ec=edge, zorder=2)
        axes.add_patch(patch)
        _write(axes, box["x"], box["y"], box["label"], ink, 9.5 * scale, "center")


def _write(
    axes: Any, across: float, down: float, words: str, ink: str, size: float, side: str
) -> None:
    made = axes.text(across, down, words, color=ink, size=size, ha=side, va="center", zorder=3)
    made.set(family="monospace", parse_math=False, usetex=False)
