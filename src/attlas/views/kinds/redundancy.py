"""The heads with similar attention."""

from collections.abc import Mapping
from typing import Any

from rich.console import Group
from rich.text import Text

from attlas.views import markup, terminal
from attlas.views.units import head_name, layer_names, visible


def render(payload: Mapping[str, Any]) -> Group:
    """The pairs of heads with the most similar attention, and the notes."""
    table = terminal.text_table(_cells(payload))
    asked = Text(visible(f"heads that attend alike, on {payload['model']}"), style="dim")
    reading = Text(payload["reading"], style="dim")
    return Group(asked, Text(), table, *terminal.notes(payload), Text(), reading)


def fragment(payload: Mapping[str, Any]) -> str:
    """The same pairs as HTML."""
    model = markup.as_text(payload["model"])
    heading = markup.question(payload, f"{model} · heads that attend alike")
    table = markup.plain_table(_cells(payload))
    return markup.card([heading, table, *markup.notes(payload)])


def _cells(payload: Mapping[str, Any]) -> list[list[str]]:
    parts = {head: head.rpartition(" ") for head in payload["heads"]}
    layers = layer_names(site for site, _, _ in parts.values())
    named = {head: head_name(layers[site], number) for head, (site, _, number) in parts.items()}
    return [
        ["one head", "another", "bits apart"],
        *(
            [named[each["one"]], named[each["other"]], f"{each['distance']:.4f}"]
            for each in payload["nearest"]
        ),
    ]
