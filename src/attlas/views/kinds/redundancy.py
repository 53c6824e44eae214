"""The heads with similar attention."""

from collections.abc import Mapping
from typing import Any

from rich.console import Group
from rich.text import Text

from attlas.views import markup, terminal
from attlas.views.units import visible


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
    head = ["one head", "another", "bits apart"]
    return [
        head,
        *(
            [_named(each["one"]), _named(each["other"]), f"{each['distance']:.4f}"]
            for each in payload["nearest"]
        ),
    ]


def _named(head: str) -> str:
    """A head with a word before its number."""
    site, _, number = head.rpartition(" ")
    return f"{site} head {number}"
