"""A result as HTML that needs no script, for notebooks, which may strip scripts."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from attlas.views.colours import LIGHT, background, css, ink, strength
from attlas.views.units import (
    Unit,
    figure,
    gap,
    in_segments,
    limit,
    patches,
    strongest,
    visible,
    words_or_tokens,
)

_MONO = "font-family:ui-monospace,Menlo,Consolas,monospace;font-variant-numeric:tabular-nums"
# Paper and ink are given together, so that it reads the same in a dark notebook.
_CARD = (
    f"background-color:{css(LIGHT.paper)};color:{css(LIGHT.inks[0])};border:1px solid #dcd9d2;"
    "border-radius:6px;padding:12px 16px;font-family:system-ui,sans-serif;font-size:14px;"
    "line-height:1.5;max-width:960px"
)
_QUIET = "color:#5f5c55;font-size:12px"
_ROW = "background:none"  # notebooks give the rows of a table backgrounds of their own


def fragment(payload: Mapping[str, Any]) -> str:
    """The prediction, the coloured text or patches, the strongest units and the notes, as HTML."""
    parts = [_heading(payload), _prediction(payload), *_body(payload), *_notes(payload)]
    return f'<div class="attlas-fragment" style="{_CARD}">{"".join(parts)}</div>'


def _heading(payload: Mapping[str, Any]) -> str:
    method, target = payload["method"], payload["target"]["name"]
    return (
        f'<div style="{_QUIET}">{_text(payload["model"])} · {_text(method)} · '
        f"target <b>{_text(target)}</b></div>"
    )


def _prediction(payload: Mapping[str, Any]) -> str:
    shown = []
    for row in payload["prediction"]:
        share = row.get("probability")
        value = row.get("value") if share is None else share
        mark = " (target)" if row["label"] == payload["target"]["name"] else ""
        number = "" if value is None else format(value, ".3f")
        shown.append(f'{_text(row["label"])} <span style="{_MONO}">{number}</span>{mark}')
    return f"<div>{' &nbsp; '.join(shown)}</div>" if shown else ""


def _body(payload: Mapping[str, Any]) -> Iterator[str]:
    signed, cells = payload["signed"], patches(payload)
    units = cells or words_or_tokens(payload)
    top = limit(units)
    if cells:
        yield _grid(cells, payload["grid"][1], top, signed)
    else:
        rows = in_segments(units)
        for name, row in rows.items():
            label = f'<span style="{_QUIET}">{_text(name)}</span> ' if len(rows) > 1 else ""
            chips = "".join(
                gap(before, unit) + _chip(unit, top, signed)
                for before, unit in zip([None, *row], row, strict=False)
            )
            yield f'<div style="margin:8px 0;line-height:1.9;{_MONO}">{label}{chips}</div>'
    yield _table(strongest(units, 8), top, signed)


def _chip(unit: Unit, top: float, signed: bool) -> str:
    score = escape(figure(unit.score, top, signed=signed))
    if unit.special:
        look = "border:1px solid #b9b5ac;color:#5f5c55;font-size:11px;padding:0 4px"
    else:
        look = _colours(unit.score, top, signed) + ";padding:2px 3px"
    style = f"{look};border-radius:4px;unicode-bidi:isolate"
    return f'<span style="{style}" title="{score}">{escape(unit.text)}</span>'


def _grid(cells: Sequence[Unit], columns: int, top: float, signed: bool) -> str:
    squares = [
        f'<td style="{_colours(cell.score, top, signed)};width:14px;height:14px;padding:0" '
        f'title="{escape(figure(cell.score, top, signed=signed))}"></td>'
        for cell in cells
    ]
    rows = ("".join(squares[i : i + columns]) for i in range(0, len(squares), columns))
    lines = "".join(f'<tr style="{_ROW}">{row}</tr>' for row in rows)
    return f'<table style="border-collapse:collapse;margin:8px 0">{lines}</table>'


def _table(units: Sequence[Unit], top: float, signed: bool) -> str:
    left, right = "text-align:left;padding:0 16px 0 0", "text-align:right;padding:0"
    rows = "".join(
        f'<tr style="{_ROW}"><td style="{left}">{escape(unit.text)}</td>'
        f'<td style="{right}">{figure(unit.score, top, signed=signed)}</td></tr>'
        for unit in units
    )
    look = f"{_MONO};font-size:12px;border-collapse:collapse;color:{css(LIGHT.inks[0])}"
    return f'<table style="{look}">{rows}</table>'


def _notes(payload: Mapping[str, Any]) -> Iterator[str]:
    for note in payload.get("notes") or ():
        yield f'<div style="{_QUIET}">Note: {_text(note)}</div>'
    if payload.get("reading"):
        yield f'<div style="{_QUIET}">{_text(payload["reading"])}</div>'


def _colours(score: float, top: float, signed: bool) -> str:
    paper = background(strength(score, top), signed, LIGHT)
    return f"background-color:{css(paper)};color:{css(ink(paper, LIGHT))}"


def _text(value: object) -> str:
    return escape(visible(str(value)))
