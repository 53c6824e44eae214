"""Bars: the words with the largest scores."""

from collections.abc import Mapping, Sequence
from typing import Any

from attlas.views.colours import css, pole
from attlas.views.figures import figure
from attlas.views.figures.paper import (
    PAPER,
    RULE,
    SMALL,
    Room,
    name_ticks,
    quiet_axes,
    say,
    shorten,
    widest,
    write,
)
from attlas.views.units import limit, score_text, strongest, with_places, words_or_tokens

Payload = Mapping[str, Any]
_PITCH = 0.17  # inches from bar to bar


@figure("explanation", "bars")
def bars(room: Room, payload: Payload, *, count: int = 10) -> Any:
    """The words of an explanation with the largest absolute scores, the largest above."""
    units = strongest(with_places(words_or_tokens(payload)), count)
    signed, top = payload["signed"], limit(units)
    labels = [shorten(unit.text) for unit in units]
    values = [unit.score for unit in units]
    told = [score_text(value, top, signed=signed).replace("-", "−") for value in values]
    margins = {"left": widest(labels) + 0.12, "right": 0.05, "bottom": 0.2, "top": 0.05}
    axes = room.axes(_PITCH * max(1, len(units)), **margins)
    hues = [css(pole(value, signed, PAPER)) for value in values]
    axes.barh(range(len(units)), values, height=0.72, color=hues)
    for row, (value, words) in enumerate(zip(values, told, strict=True)):
        side = "right" if value < 0 else "left"
        shift = -0.015 * top if value < 0 else 0.015 * top
        write(axes, value + shift, row, words, ha=side, va="center_baseline", size=SMALL)
    inside = max(0.5, room.width - margins["left"] - margins["right"])
    axes.set_xlim(*_limits(values, (widest(told) + 0.06) / inside))
    axes.set_ylim(len(units) - 0.5, -0.5)
    axes.axvline(0, color=RULE, linewidth=0.6)
    quiet_axes(axes)
    name_ticks(axes, "y", labels, _PITCH)
    axes.tick_params(axis="y", length=0)
    axes.set_xticks([])
    target = shorten(payload["target"]["name"].strip())
    say(axes, x=f"{shorten(payload['method'])}, for {target}")
    return axes


def _limits(values: Sequence[float], label: float) -> tuple[float, float]:
    """The ends of the axis, so that a label of this share of it fits beyond each bar."""
    low, high = min([0.0, *values]), max([0.0, *values])
    if low == high:
        return 0.0, 1.0
    sides = (low < 0) + (high > 0)
    room = (high - low) * label / max(0.2, 1 - sides * label)
    return (low - room if low < 0 else 0.0), (high + room if high > 0 else 0.0)
