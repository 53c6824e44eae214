"""What a model wrote, in a terminal, in colour or without."""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.console import Group
from rich.text import Text

from attlas.views.terminal import LABEL, body, fit, notes, style_of
from attlas.views.units import ShownUnit, figure, limit, visible
from attlas.views.written import mean_units, written_units

_INPUT, _SHOWN = 10, 3  # columns for an input, inputs shown


def render_generation(payload: Mapping[str, Any]) -> Group:
    """The method, the coloured text, what each written word owes most to, the notes."""
    units = mean_units(payload)
    written = written_units(payload, _SHOWN)
    top = max((limit(inputs) for _, inputs in written), default=0.0)
    signed, count = payload["signed"], payload["shape"][0]
    asked = f"{payload['method']} on {payload['model']} · {count} tokens written"
    return Group(
        Text(visible(asked), style="dim"),
        Text(),
        *body(payload, units, limit(units)),
        Text(),
        *(_line(unit, inputs, top, signed) for unit, inputs in written),
        *notes(payload),
    )


def _line(unit: ShownUnit, inputs: Sequence[ShownUnit], top: float, signed: bool) -> Text:
    line = Text(f"{fit(unit.text, LABEL - 2)} ←", no_wrap=True, overflow="crop")
    for each in inputs:
        line.append(" ")
        line.append(fit(each.text, _INPUT), style=style_of(each, top, signed))
        line.append(f" {figure(each.score, top, signed=signed):<7}")
    line.rstrip()
    return line
