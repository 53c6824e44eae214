"""A tree of attention: as lines in a terminal, as a drawing in a notebook."""

from collections.abc import Mapping
from html import escape
from typing import Any

from rich.console import Group
from rich.style import Style
from rich.text import Text
from rich.tree import Tree

from attlas.views import terminal
from attlas.views.colours import DARK, css
from attlas.views.markup import card, heading, notes, prediction
from attlas.views.tree_drawing import colour_of, segments_of, tree_svg
from attlas.views.units import score_text, token_places, visible


def render(payload: Mapping[str, Any]) -> Group:
    """The prediction, the tree with the layer and attribution of each edge, and the notes."""
    segments = segments_of(payload)
    branches = {payload["root"]: Tree(_label(payload, payload["root"], segments))}
    top = max((edge["attribution"] for edge in payload["edges"]), default=0.0)
    for edge in payload["edges"]:
        line = _label(payload, edge["child"], segments)
        line.append(f"  {score_text(edge['attribution'], top, signed=False)}")
        line.append(f"  layer {edge['layer']}", style="dim")
        branches[edge["child"]] = branches[edge["parent"]].add(line)
    return Group(
        *terminal.prediction(payload),
        terminal.request_line(payload),
        Text(),
        *_legend(segments),
        branches[payload["root"]],
        Text(),
        Text(_kept(payload)),
        *terminal.notes(payload),
    )


def fragment(payload: Mapping[str, Any]) -> str:
    """The prediction, the drawing and the notes, as HTML."""
    drawing = f'<div style="overflow-x:auto;margin:8px 0">{tree_svg(payload)}</div>'
    share = f"<div>{escape(_kept(payload))}</div>"
    return card([heading(payload), prediction(payload), drawing, share, *notes(payload)])


def _kept(payload: Mapping[str, Any]) -> str:
    count = len(payload["edges"])
    edges = f"{count} edge{'' if count == 1 else 's'}"
    return f"{edges}: {100 * payload['share']:.0f} % of the positive attribution between tokens."


def _label(payload: Mapping[str, Any], place: int, segments: list[str]) -> Text:
    token = payload["tokens"][place]
    colour = css(colour_of(token["segment"], segments, DARK))
    style = Style(dim=True) if token["special"] else Style(color=colour, bold=True)
    label = Text(visible(token["label"]), style=style)
    which = token_places(payload["tokens"]).get(place)
    return label.append(f" ({which})", style="dim") if which else label


def _legend(segments: list[str]) -> list[Text]:
    if len(segments) < 2:
        return []
    line = Text()
    for name in segments:
        line.append(f"{visible(name)}  ", style=css(colour_of(name, segments, DARK)))
    return [line]
