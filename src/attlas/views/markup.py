"""HTML that needs no script, for notebooks, which may strip scripts."""

import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from html import escape
from typing import Any

from attlas.views.colours import LIGHT, background, css, ink, strength
from attlas.views.units import (
    ShownUnit,
    gap,
    in_segments,
    limit,
    patches,
    score_text,
    units_except,
    visible,
)

MONO = "font-family:ui-monospace,Menlo,Consolas,monospace;font-variant-numeric:tabular-nums"
# Set both paper and ink, so that it looks the same in a dark notebook.
_CARD = (
    f"background-color:{css(LIGHT.paper)};color:{css(LIGHT.inks[0])};border:1px solid #dcd9d2;"
    "border-radius:6px;padding:12px 16px;font-family:system-ui,sans-serif;font-size:14px;"
    "line-height:1.5;max-width:960px"
)
QUIET = "color:#5f5c55;font-size:12px"
_DOUBT = "border-left:3px solid #b3261e;padding:4px 12px;margin:8px 0;color:#8c1d18"
_OVER = (
    "position:absolute;left:0;top:0;width:100%;height:100%;margin:0;border-collapse:collapse;"
    "table-layout:fixed;opacity:0.6"
)
_PICTURE = re.compile("data:image/png;base64,[A-Za-z0-9+/=]+")  # loads nothing
_CELL = "text-align:right;padding:1px 6px"
ROW = "background:none"  # notebooks set a background for the rows of tables


def card(parts: Iterable[str]) -> str:
    """A box around pieces of HTML, with its own paper."""
    return f'<div class="attlas-fragment" style="{_CARD}">{"".join(parts)}</div>'


def heading(payload: Mapping[str, Any]) -> str:
    """The model, the method and the target."""
    method, target, label = payload["method"], payload["target"]["name"], payload.get("true_label")
    known = f" · true label <b>{as_text(label)}</b>" if label else ""
    facts = f"{as_text(payload['model'])} · {as_text(method)} · target <b>{as_text(target)}</b>"
    return question(payload, facts + known)


def question(payload: Mapping[str, Any], facts: str) -> str:
    """The question that a result answers, what was asked, and how to read the answer."""
    reading = payload.get("reading")
    told = f'<div style="margin-bottom:8px">{as_text(reading)}</div>' if reading else ""
    headline = payload.get("headline")
    asked = f'<div style="font-size:16px"><b>{as_text(headline)}</b></div>' if headline else ""
    warned = payload.get("warning")
    doubt = f'<div style="{_DOUBT}"><b>Warning:</b> {as_text(warned)}</div>' if warned else ""
    return f'{asked}<div style="{QUIET}">{facts}</div>{doubt}{told}'


def prediction(payload: Mapping[str, Any]) -> str:
    """The model's most likely answers with their probabilities."""
    shown = []
    for row in payload["prediction"]:
        share = row.get("probability")
        value = row.get("value") if share is None else share
        mark = " (target)" if row["label"] == payload["target"]["name"] else ""
        number = "" if value is None else format(value, ".3f")
        shown.append(f'{as_text(row["label"])} <span style="{MONO}">{number}</span>{mark}')
    return f"<div>{' &nbsp; '.join(shown)}</div>" if shown else ""


def coloured_text(payload: Mapping[str, Any], units: Sequence[ShownUnit]) -> Iterator[str]:
    """The text and the patches of a picture, coloured by score, each on a scale of its own."""
    seen, signed = patches(payload, units), payload["signed"]
    cells = [cell for _, own in seen for cell in own]
    others = units_except(units, cells)
    if not cells or not all(unit.special for unit in others):
        yield from _flow(others, limit(others), signed)
    yield from (_grid(own, picture, limit(cells), signed) for picture, own in seen)


def _flow(units: Sequence[ShownUnit], top: float, signed: bool) -> Iterator[str]:
    rows = in_segments(units)
    for name, row in rows.items():
        label = f'<span style="{QUIET}">{as_text(name)}</span> ' if len(rows) > 1 else ""
        chips = "".join(
            gap(before, unit) + chip(unit, top, signed)
            for before, unit in zip([None, *row], row, strict=False)
        )
        yield f'<div style="margin:8px 0;line-height:1.9;{MONO}">{label}{chips}</div>'


def chip(unit: ShownUnit, top: float, signed: bool) -> str:
    """A unit on a paper of its colour; pointing at it shows its score."""
    score = escape(score_text(unit.score, top, signed=signed))
    if unit.special:
        look = "border:1px solid #b9b5ac;color:#5f5c55;font-size:11px;padding:0 4px"
    else:
        look = _colours(unit.score, top, signed) + ";padding:2px 3px"
    style = f"{look};border-radius:4px;unicode-bidi:isolate"
    return f'<span style="{style}" title="{score}">{escape(unit.text)}</span>'


def _grid(cells: Sequence[ShownUnit], picture: Mapping[str, Any], top: float, signed: bool) -> str:
    image = picture["image"] or ""
    over = _PICTURE.fullmatch(image) is not None
    rows, columns = picture["grid"]
    size = (
        f"width:{100 / columns:.4f}%;height:{100 / rows:.4f}%" if over else "width:14px;height:14px"
    )
    squares = [
        f'<td style="{_colours(cell.score, top, signed)};{size};padding:0" '
        f'title="{escape(score_text(cell.score, top, signed=signed))}"></td>'
        for cell in cells
    ]
    found = ("".join(squares[i : i + columns]) for i in range(0, len(squares), columns))
    lines = "".join(f'<tr style="{ROW}">{row}</tr>' for row in found)
    high = "height:96px;" if picture["segment"] == "sound" else ""  # a spectrogram has no form
    if not over:
        return f'<table style="border-collapse:collapse;margin:8px 0">{lines}</table>'
    return (
        '<div style="position:relative;width:320px;max-width:100%;margin:8px 0">'
        f'<img src="{image}" alt="" style="display:block;width:100%;{high}margin:0">'
        f'<table style="{_OVER}">{lines}</table></div>'
    )


def notes(payload: Mapping[str, Any]) -> Iterator[str]:
    """The notes, one on each line."""
    for note in payload.get("notes") or ():
        yield f'<div style="{QUIET}">Note: {as_text(note)}</div>'


def _colours(score: float, top: float, signed: bool) -> str:
    paper = background(strength(score, top), signed, LIGHT)
    return f"background-color:{css(paper)};color:{css(ink(paper, LIGHT))}"


def as_text(value: object) -> str:
    """A value as text, with markup and control characters escaped."""
    return escape(visible(str(value)))


def html_table(rows: Iterable[Sequence[tuple[str, str]]]) -> str:
    """A table of cells; each is a text and its CSS."""
    body = "".join(
        f'<tr style="{ROW}">'
        + "".join(f'<td style="{_CELL};{look}">{as_text(cell)}</td>' for cell, look in row)
        + "</tr>"
        for row in rows
    )
    return (
        f'<table style="{MONO};font-size:12px;border-collapse:collapse;margin:8px 0">{body}</table>'
    )


def plain_table(rows: Iterable[Sequence[str]]) -> str:
    """A table of texts, aligned to the right."""
    return html_table([(cell, "") for cell in row] for row in rows)
