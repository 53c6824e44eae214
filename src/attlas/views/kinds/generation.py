"""A generation: the coloured text, and what each written word owes most to."""

from base64 import b64decode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import replace
from html import escape
from typing import Any

import numpy as np
from numpy.typing import NDArray
from rich.console import Group
from rich.text import Text

from attlas.views import terminal
from attlas.views.markup import MONO, QUIET, as_text, card, chip, coloured_text, notes, question
from attlas.views.terminal import LABEL, fit, style_of
from attlas.views.units import ShownUnit, limit, score_text, scored_units, strongest, visible

_INPUTS = 3  # shown for each written word
_COLUMNS = 10  # of an input, in a terminal
_ROWS = 40  # written words shown, in a notebook


def render(payload: Mapping[str, Any]) -> Group:
    """The method, the coloured text, what each written word owes most to, and the notes."""
    units = mean_units(payload)
    written = written_units(payload, _INPUTS)
    top = max((limit(inputs) for _, inputs in written), default=0.0)
    signed, count = payload["signed"], payload["shape"][0]
    asked = f"{payload['method']} on {payload['model']} · {count} tokens written"
    return Group(
        Text(visible(asked), style="dim"),
        *terminal.warning(payload),
        Text(),
        *terminal.coloured_text(payload, units),
        Text(),
        *(_line(unit, inputs, top, signed) for unit, inputs in written),
        *terminal.notes(payload),
    )


def _line(unit: ShownUnit, inputs: Sequence[ShownUnit], top: float, signed: bool) -> Text:
    line = Text(f"{fit(unit.text, LABEL - 2)} ←", no_wrap=True, overflow="crop")
    for each in inputs:
        line.append(" ")
        line.append(fit(each.text, _COLUMNS), style=style_of(each, top, signed))
        line.append(f" {score_text(each.score, top, signed=signed):<7}")
    line.rstrip()
    return line


def fragment(payload: Mapping[str, Any]) -> str:
    """The coloured text, what each written word owes most to, and the notes, as HTML."""
    units, written = mean_units(payload), written_units(payload, _INPUTS)
    parts = [
        _heading(payload),
        *coloured_text(payload, units),
        *_table(payload, written),
    ]
    return card([*parts, *notes(payload)])


def _heading(payload: Mapping[str, Any]) -> str:
    count, model, method = payload["shape"][0], payload["model"], payload["method"]
    return question(payload, f"{as_text(model)} · {as_text(method)} · {count} tokens written")


def _table(
    payload: Mapping[str, Any], written: Sequence[tuple[ShownUnit, Sequence[ShownUnit]]]
) -> Iterator[str]:
    top, signed = max((limit(inputs) for _, inputs in written), default=0.0), payload["signed"]
    plain = "text-align:left;padding:0 16px 0 0;white-space:nowrap"
    rows = []
    for unit, inputs in written[:_ROWS]:
        cells = "".join(
            f'<td style="{plain}">{chip(each, top, signed)} '
            f'<span style="{QUIET}">{score_text(each.score, top, signed=signed)}</span></td>'
            for each in inputs
        )
        name = f'<td style="{plain};font-weight:600">{escape(unit.text)}</td>'
        rows.append(f'<tr style="background:none">{name}{cells}</tr>')
    look = f"{MONO};font-size:13px;line-height:1.9;border-collapse:collapse;margin:8px 0"
    yield f'<table style="{look}">{"".join(rows)}</table>'
    if len(written) > _ROWS:
        yield f'<div style="{QUIET}">and {len(written) - _ROWS} more: to_html shows all</div>'


Written = tuple[ShownUnit, list[ShownUnit]]


def mean_units(payload: Mapping[str, Any]) -> list[ShownUnit]:
    """Every word, or token, with its mean score over all written tokens."""
    return scored_units(payload, _mean(payload, _matrix(payload)).tolist())


def written_units(payload: Mapping[str, Any], count: int) -> list[Written]:
    """Every written word, or token, with the units before it that score highest."""
    matrix, outputs = _matrix(payload), payload["outputs"]
    rows = {place: row for row, place in enumerate(outputs)}
    units = scored_units(payload, [0.0] * len(payload["tokens"]))
    unit_of = np.zeros(len(payload["tokens"]), dtype=np.int64)
    for index, unit in enumerate(units):
        unit_of[list(unit.positions)] = index
    found = []
    for unit in units:
        held = [rows[place] for place in unit.positions if place in rows]
        if held:
            sums = np.zeros(len(units))
            np.add.at(sums, unit_of, _mean(payload, matrix[held]))
            found.append((unit, _strongest(units, sums, count)))
    return found


def _strongest(
    units: Sequence[ShownUnit], sums: NDArray[np.float64], count: int
) -> list[ShownUnit]:
    """The units with the largest nonzero scores."""
    # Take a few more, since special units come last.
    special = sum(unit.special for unit in units)
    order = np.argsort(-np.abs(sums), kind="stable")[: count + special]
    return strongest([replace(units[i], score=float(sums[i])) for i in order if sums[i]], count)


def _matrix(payload: Mapping[str, Any]) -> NDArray[np.float32]:
    return np.frombuffer(b64decode(payload["data"]), "<f4").reshape(payload["shape"])


def _mean(payload: Mapping[str, Any], rows: NDArray[np.float32]) -> NDArray[np.float64]:
    if not len(rows):
        return np.zeros(len(payload["tokens"]))
    mean: NDArray[np.float64] = rows.mean(axis=0, dtype=np.float64)
    return mean
