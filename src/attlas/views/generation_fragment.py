"""What a model wrote, as HTML that needs no script."""

from collections.abc import Iterator, Mapping, Sequence
from html import escape
from typing import Any

from attlas.views.fragment import MONO, QUIET, as_text, body, card, chip, notes
from attlas.views.units import ShownUnit, figure, limit
from attlas.views.written import mean_units, written_units

_INPUTS, _ROWS = 3, 40  # inputs shown for each written word, words shown


def generation_fragment(payload: Mapping[str, Any]) -> str:
    """The coloured text, what each written word owes most to, and the notes, as HTML."""
    units, written = mean_units(payload), written_units(payload, _INPUTS)
    parts = [_heading(payload), *body(payload, units, limit(units)), *_table(payload, written)]
    return card([*parts, *notes(payload)])


def _heading(payload: Mapping[str, Any]) -> str:
    count = payload["shape"][0]
    return (
        f'<div style="{QUIET}">{as_text(payload["model"])} · {as_text(payload["method"])} · '
        f"{count} tokens written</div>"
    )


def _table(
    payload: Mapping[str, Any], written: Sequence[tuple[ShownUnit, Sequence[ShownUnit]]]
) -> Iterator[str]:
    top, signed = max((limit(inputs) for _, inputs in written), default=0.0), payload["signed"]
    plain = "text-align:left;padding:0 16px 0 0;white-space:nowrap"
    rows = []
    for unit, inputs in written[:_ROWS]:
        cells = "".join(
            f'<td style="{plain}">{chip(each, top, signed)} '
            f'<span style="{QUIET}">{figure(each.score, top, signed=signed)}</span></td>'
            for each in inputs
        )
        name = f'<td style="{plain};font-weight:600">{escape(unit.text)}</td>'
        rows.append(f'<tr style="background:none">{name}{cells}</tr>')
    look = f"{MONO};font-size:13px;line-height:1.9;border-collapse:collapse;margin:8px 0"
    yield f'<table style="{look}">{"".join(rows)}</table>'
    if len(written) > _ROWS:
        yield f'<div style="{QUIET}">and {len(written) - _ROWS} more: to_html shows all</div>'
