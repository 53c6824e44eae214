"""An explanation: the coloured text or patches, and the strongest units."""

from collections.abc import Mapping, Sequence
from html import escape
from typing import Any

from rich.console import Group
from rich.style import Style
from rich.text import Text

from attlas.views import terminal
from attlas.views.colours import DARK, LIGHT, css, pole, strength
from attlas.views.licence import licence_html, licence_lines
from attlas.views.markup import MONO, ROW, card, coloured_text, heading, notes, prediction
from attlas.views.terminal import BAR, fit, rightwards
from attlas.views.units import (
    ShownUnit,
    limit,
    score_text,
    strongest,
    sum_words,
    with_places,
    words_or_tokens,
)

_TOP = 8  # units shown as rows
_BARS = 5  # units shown as bars


def render(payload: Mapping[str, Any]) -> Group:
    """The prediction, the method, the coloured text, the strongest units as bars, the notes."""
    units = words_or_tokens(payload)
    top, signed = limit(units), payload["signed"]
    return Group(
        *terminal.prediction(payload),
        terminal.request_line(payload),
        *terminal.warning(payload),
        *terminal.coloured_text(payload, units),
        Text(),
        *(_bar(unit, top, signed) for unit in strongest(with_places(units), _BARS)),
        *(Text(words) for words in [sum_words(payload)] if words),
        *licence_lines(payload),
        *terminal.notes(payload),
    )


def fragment(payload: Mapping[str, Any]) -> str:
    """The prediction, the coloured text or patches, the strongest units and the notes, as HTML."""
    units = words_or_tokens(payload)
    top = limit(units)
    table = _table(strongest(with_places(units), _TOP), top, payload["signed"])
    parts = [heading(payload), prediction(payload), *coloured_text(payload, units), table]
    added = [f"<div>{escape(words)}</div>" for words in [sum_words(payload)] if words]
    return card([*parts, *added, *licence_html(payload), *notes(payload)])


def _bar(unit: ShownUnit, top: float, signed: bool) -> Text:
    share = strength(unit.score, top)
    line = Text(f"{fit(unit.text)} {score_text(unit.score, top, signed=signed):>9} ", no_wrap=True)
    colour = Style(color=css(pole(share, signed, DARK)))
    if not signed:
        return line.append(rightwards(max(share, 0.0)).rstrip(), style=colour)
    line.append(_leftwards(max(-share, 0.0)), style=colour).append("│")
    return line.append(rightwards(max(share, 0.0)).rstrip(), style=colour)


def _leftwards(share: float) -> str:
    halves = round(share * BAR * 2)
    return ("▐" * (halves % 2) + "█" * (halves // 2)).rjust(BAR)


def _table(units: Sequence[ShownUnit], top: float, signed: bool) -> str:
    left, right = "text-align:left;padding:0 16px 0 0", "text-align:right;padding:0"
    rows = "".join(
        f'<tr style="{ROW}"><td style="{left}">{escape(unit.text)}</td>'
        f'<td style="{right}">{score_text(unit.score, top, signed=signed)}</td></tr>'
        for unit in units
    )
    look = f"{MONO};font-size:12px;border-collapse:collapse;color:{css(LIGHT.inks[0])}"
    return f'<table style="{look}">{rows}</table>'
