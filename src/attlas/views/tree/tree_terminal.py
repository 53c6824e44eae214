"""A tree in a terminal."""

from collections.abc import Mapping
from typing import Any

from rich.console import Group
from rich.style import Style
from rich.text import Text
from rich.tree import Tree

from attlas.views.colours import DARK, css
from attlas.views.terminal import asked, notes, prediction
from attlas.views.tree.tree_drawing import colour_of, kept, segments_of
from attlas.views.units import figure, visible


def render_tree(payload: Mapping[str, Any]) -> Group:
    """The prediction, the tree with the layer and the attribution of each edge, the notes."""
    segments = segments_of(payload)
    branches = {payload["root"]: Tree(_label(payload, payload["root"], segments))}
    top = max((edge["attribution"] for edge in payload["edges"]), default=0.0)
    for edge in payload["edges"]:
        line = _label(payload, edge["child"], segments)
        line.append(f"  {figure(edge['attribution'], top, signed=False)}")
        line.append(f"  layer {edge['layer']}", style="dim")
        branches[edge["child"]] = branches[edge["parent"]].add(line)
    return Group(
        *prediction(payload),
        asked(payload),
        Text(),
        *_legend(segments),
        branches[payload["root"]],
        Text(),
        Text(kept(payload)),
        *notes(payload),
    )


def _label(payload: Mapping[str, Any], place: int, segments: list[str]) -> Text:
    token = payload["tokens"][place]
    colour = css(colour_of(token["segment"], segments, DARK))
    style = Style(dim=True) if token["special"] else Style(color=colour, bold=True)
    return Text(visible(token["label"]), style=style)


def _legend(segments: list[str]) -> list[Text]:
    if len(segments) < 2:
        return []
    line = Text()
    for name in segments:
        line.append(f"{visible(name)}  ", style=css(colour_of(name, segments, DARK)))
    return [line]
