"""A trial that was run by itself: in a terminal, and as HTML that needs no script."""

from collections.abc import Iterator, Mapping
from typing import Any

from rich.console import Group
from rich.text import Text

from attlas.views import report_words as words
from attlas.views.markup import QUIET, as_text, card
from attlas.views.terminal import notes
from attlas.views.units import visible

Payload = Mapping[str, Any]


def render(payload: Payload) -> Group:
    """The question of the trial, what it found, its figures and the notes."""
    (trial,) = payload["trials"]
    return Group(
        Text(f"{visible(trial['name'])} · {words.facts(payload)}", style="dim"),
        Text(visible(payload["reading"]), style="bold"),
        Text(),
        *words.trial_body(trial),
        *notes(payload),
        *(Text(line, style="dim") for line in _limits(payload)),
    )


def fragment(payload: Payload) -> str:
    """The same, as HTML."""
    lines = [*(f"Note: {each}" for each in payload["notes"]), *_limits(payload)]
    return card(
        [
            f'<div style="{QUIET}">{as_text(words.facts(payload))}</div>',
            f"<div>{as_text(payload['reading'])}</div>",
            *words.trial_fragments(payload),
            *(f'<div style="{QUIET}">{as_text(line)}</div>' for line in lines if line),
        ]
    )


def _limits(payload: Payload) -> Iterator[str]:
    """What the trial does not show, and how many rows were left out."""
    (trial,) = payload["trials"]
    if trial["does_not_show"]:
        yield ""
        yield f"What this does not show. {visible(trial['does_not_show'])}"
    left = payload["data"]["left_out"]
    if left:
        reasons = ", ".join(f"{count} × {visible(reason)}" for reason, count in left.items())
        yield f"Left out: {reasons}"
