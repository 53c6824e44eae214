"""Matrices: attention from token to token, what is written by what was read, heads by heads."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from attlas.errors import UnknownNameError, UsageError
from attlas.views.figures import figure
from attlas.views.figures.paper import (
    HIGHEST,
    RULE,
    Room,
    colour_bar,
    image_of,
    name_ticks,
    quiet_axes,
    say,
    shorten,
    widest,
)
from attlas.views.figures.weights import generation_scores, one_site

Payload = Mapping[str, Any]
_BAR, _NAME = 0.5, 0.14  # inches for the scale, and for the name of an axis
_LARGEST_CELL = 0.24  # inches: a small matrix is not blown up
_NAMED = 0.125  # inches of a row whose name must be there


@figure("maps", "matrix")
@figure("explanation", "matrix")
def matrix(
    room: Room, payload: Payload, *, layer: int | str | None = None, head: int | None = None
) -> Any:
    """The weights of a head, or the mean over the heads of a layer (the last if none is named)."""
    site = one_site(payload, layer)
    which = "mean over heads" if head is None else f"head {head % len(site.weights)}"
    title = f"{payload['maps']['shows']} · {site.title} · {which}"
    rows, columns = site.query_labels, site.key_labels
    return table(
        room, site.head(head), rows, columns, payload["maps"]["signed"], ("to", "from"), title
    )


@figure("generation", "matrix")
def generation_matrix(room: Room, payload: Payload) -> Any:
    """What each written token (rows) owes to each token before it (columns)."""
    scores, labels = generation_scores(payload), [shorten(t["label"]) for t in payload["tokens"]]
    outputs = payload["outputs"]
    before = np.arange(scores.shape[1]) < np.array(outputs)[:, None]
    shown = np.where(before, scores, np.nan)[:, : max(outputs)]
    rows = [labels[place] for place in outputs]
    names = ("read", "written")
    title = shorten(payload["method"])
    columns = labels[: max(outputs)]
    return table(room, shown, rows, columns, payload["signed"], names, title, _NAMED)


@figure("redundancy", "matrix")
def redundancy_matrix(room: Room, payload: Payload) -> Any:
    """The distance between the attention of every two heads."""
    values = np.array(payload["distances"], dtype=float)
    rows, columns = _numbered(payload["heads"])
    return table(room, values, rows, columns, False, ("", ""), "distance in bits", _NAMED)


@figure("report", "agreement")
def agreement(room: Room, payload: Payload, *, by: str | None = None) -> Any:
    """How similar the scores of every two methods are."""
    found = payload["agreement"]
    if not found:
        raise UsageError("this report has no agreement between methods")
    by = by or next(iter(found["by"]))
    if by not in found["by"]:
        raise UnknownNameError("agreement", by, found["by"])
    rows, columns = _numbered(found["methods"])
    values = np.array(found["by"][by], dtype=float)
    signed = bool(np.nanmin(values, initial=0.0) < 0)
    title = f"agreement: {shorten(by)}"
    return table(room, values, rows, columns, signed, ("", ""), title, _NAMED)


def _numbered(names: Sequence[str]) -> tuple[list[str], list[str]]:
    """Names with numbers for the rows, and the numbers alone for the columns."""
    rows = [f"{shorten(name)}  {place}" for place, name in enumerate(names, 1)]
    return rows, [str(place) for place in range(1, len(names) + 1)]


def table(
    room: Room,
    values: Any,
    rows: Sequence[str],
    columns: Sequence[str],
    signed: bool,
    names: tuple[str, str],
    title: str,
    least: float = 0.0,
) -> Any:
    """A table of numbers with a label at each row and column, and a scale.

    A row is `least` inches high at least; cells are square if there is room.
    """
    left = widest(rows) + 0.12 + (_NAME if names[1] else 0)
    bottom = widest(columns) + 0.12 + (_NAME if names[0] else 0)
    cell = min((room.width - left - _BAR) / max(1, len(columns)), _LARGEST_CELL)
    right = room.width - left - cell * len(columns)
    high = min(max(cell, least), HIGHEST / max(1, len(rows))) * len(rows)
    axes = room.axes(max(high, 0.2), left=left, right=right, bottom=bottom, top=0.2)
    top = float(np.nanmax(np.abs(values), initial=0.0))
    image = image_of(axes, values, top, signed)
    quiet_axes(axes, "left", "right", "top", "bottom")
    name_ticks(axes, "x", columns, cell)
    name_ticks(axes, "y", rows, high / max(1, len(rows)))
    axes.tick_params(length=0, pad=2)
    for spine in axes.spines.values():
        spine.set_color(RULE)
    say(axes, x=names[0], y=names[1], title=title)
    colour_bar(axes, image)
    return axes
