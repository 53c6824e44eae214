"""A tree as SVG, in a file or in a notebook."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from attlas.views.colours import LIGHT, RGB, Theme, css, strength
from attlas.views.fragment import card, heading, notes, prediction
from attlas.views.tree.tree_layout import BOX, STORY
from attlas.views.units import figure, visible

QUIET = "#66625a"
LINE = "#b3afa5"
_FONT = "ui-monospace, Menlo, Consolas, 'DejaVu Sans Mono', monospace"


def tree_fragment(payload: Mapping[str, Any]) -> str:
    """The prediction, the drawing and the notes, as HTML."""
    drawing = f'<div style="overflow-x:auto;margin:8px 0">{tree_svg(payload)}</div>'
    told = f"<div>{escape(kept(payload))}</div>"
    return card([heading(payload), prediction(payload), drawing, told, *notes(payload)])


def kept(payload: Mapping[str, Any]) -> str:
    """How much of the attribution the edges have."""
    count = len(payload["edges"])
    edges = f"{count} edge{'' if count == 1 else 's'}"
    return f"{edges}: {100 * payload['share']:.0f} % of the attribution above zero between tokens."


def segments_of(payload: Mapping[str, Any]) -> list[str]:
    """The segments of the text, in order."""
    return list(dict.fromkeys(token["segment"] for token in payload["tokens"]))


def colour_of(segment: str, segments: Sequence[str], theme: Theme) -> RGB:
    """The colour of a segment: the second text of a pair has one of its own."""
    return theme.favour if segments.index(segment) % 2 else theme.plain


def tree_svg(payload: Mapping[str, Any]) -> str:
    """The drawing as SVG, with nothing in it that is loaded or run."""
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
        told = f"layer {edge['layer']}: {figure(edge['attribution'], top, signed=False)}"
        x, y, end, turn, below = curve(one, other)
        middle = (y + turn) / 2
        yield (
            f'<path d="M{x:.1f} {y:.1f}C{x:.1f} {middle:.1f} {end:.1f} {middle:.1f} '
            f'{end:.1f} {turn:.1f}V{below:.1f}" fill="none" stroke="{LINE}" '
            f'stroke-width="{thickness(edge, top):.2f}"><title>{escape(told)}</title></path>'
        )


def curve(
    parent: Mapping[str, Any], child: Mapping[str, Any]
) -> tuple[float, float, float, float, float]:
    """An edge: where it begins, across and down; where it ends across, turns down, and ends down.

    It goes across before the next layer, and then down in the column of the child.
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
    """The edge, the paper and the ink of a token's box."""
    if box["special"]:
        return LINE, css(LIGHT.paper), QUIET
    tint = tuple(round(0.88 * a + 0.12 * b) for a, b in zip(LIGHT.paper, colour, strict=True))
    return css(colour), "#{:02x}{:02x}{:02x}".format(*tint), css(LIGHT.inks[0])


def thickness(edge: Mapping[str, Any], top: float) -> float:
    """The thickness of an edge in a drawing."""
    return 1.0 + 4.0 * strength(edge["attribution"], top)
