"""All heads of a model: their maps as thumbnails, and how important each is."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attlas.errors import UsageError
from attlas.views.figures import figure
from attlas.views.figures.paper import (
    HIGHEST,
    Room,
    colour_bar,
    image_of,
    name_ticks,
    quiet_axes,
    say,
    shorten,
    widest,
)
from attlas.views.figures.weights import all_sites

Payload = Mapping[str, Any]
_DOTS = 48  # of the side of a thumbnail, at most
_NAME = 0.16


@figure("maps", "heads")
@figure("explanation", "heads")
def heads(room: Room, payload: Payload) -> Any:
    """Every head as a thumbnail, layer by layer; each has its largest weight in full colour."""
    sites = all_sites(payload)
    size = min(_DOTS, max(max(site.weights.shape[1:]) for site in sites))
    count = max(len(site.weights) for site in sites)
    cells = [[_thumbnail(head, size) for head in site.weights] for site in sites]
    sheet = mosaic(cells, count, size)
    labels = _layer_names([(site.kind, site.layer, site.name) for site in sites])
    left = widest(labels) + 0.12 + _NAME
    cell = min((room.width - left - 0.02) / count, 1.0)
    cell = min(cell, (HIGHEST - 0.6) / len(sites))
    right = room.width - left - cell * count
    axes = room.axes(cell * len(sites), left=left, right=right, bottom=0.36, top=0.2)
    image_of(axes, sheet, 1.0, payload["maps"]["signed"], interpolation="none")
    _tick_cells(axes, count, labels, size + 1, cell)
    say(axes, x="head", y="layer", title=f"{payload['maps']['shows']}, each head on its own scale")
    return axes


def mosaic(cells: Sequence[Sequence[Any]], columns: int, size: int) -> NDArray[np.float64]:
    """Thumbnails side by side, one dot apart; NaN where there is none."""
    step = size + 1
    sheet = np.full((len(cells) * step - 1, columns * step - 1), np.nan)
    for row, line in enumerate(cells):
        for column, cell in enumerate(line):
            high, wide = cell.shape
            sheet[row * step : row * step + high, column * step : column * step + wide] = cell
    return sheet


def _thumbnail(weights: NDArray[np.float64], size: int) -> NDArray[np.float64]:
    """A map on at most size × size dots: each is the largest weight it stands for."""
    top = float(np.abs(weights).max(initial=0.0)) or 1.0
    for axis in (0, 1):
        ends = np.linspace(0, weights.shape[axis], min(size, weights.shape[axis]) + 1).astype(int)
        high = np.maximum.reduceat(weights, ends[:-1], axis=axis)
        low = np.minimum.reduceat(weights, ends[:-1], axis=axis)
        weights = np.where(np.abs(low) > high, low, high)
    return weights / top


def _layer_names(sites: Sequence[tuple[str, int, str]]) -> list[str]:
    """The number of each layer, or its whole name where there are several kinds."""
    alone = len({kind for kind, _, _ in sites}) == 1
    return [str(layer) if alone else name for _, layer, name in sites]


def _tick_cells(axes: Any, columns: int, rows: Sequence[str], step: int, pitch: float) -> None:
    quiet_axes(axes)
    name_ticks(axes, "x", [str(head) for head in range(columns)], pitch)
    name_ticks(axes, "y", rows, pitch)
    for side in ("x", "y"):
        axis = getattr(axes, f"{side}axis")
        labels = [label.get_text() for label in axis.get_ticklabels()]
        places = [place * step + max(0, step - 2) / 2 for place in axis.get_ticklocs()]
        axis.set_ticks(places, labels, parse_math=False, usetex=False, rotation=0)
    axes.tick_params(length=0, pad=2)


@figure("heads", "importance")
def importance(room: Room, payload: Payload, *, by: str | None = None) -> Any:
    """How important each head is, layer × head."""
    found = {each["by"]: each for each in payload["importances"]}
    if not found:
        raise UsageError('no ranking is shared by all texts here: plot "curves"')
    by = by or next(iter(found))
    if by not in found:
        raise UsageError(f"no ranking by {by!r}: there are {', '.join(found)}")
    sites = found[by]["sites"]
    count = max(len(site["heads"]) for site in sites)
    values = np.full((len(sites), count), np.nan)
    for row, site in enumerate(sites):
        for head in site["heads"]:
            values[row, head["head"]] = head["importance"]
    kinds = [site["name"].partition(".") for site in sites]
    labels = _layer_names(
        [
            (kind, int(layer or 0), site["name"])
            for (kind, _, layer), site in zip(kinds, sites, strict=True)
        ]
    )
    left = widest(labels) + 0.12 + _NAME
    cell = min((room.width - left - 0.5) / count, 0.3)
    cell = min(cell, (HIGHEST - 0.6) / len(sites))
    right = room.width - left - cell * count
    axes = room.axes(cell * len(sites), left=left, right=right, bottom=0.36, top=0.2)
    signed = bool(np.nanmin(values, initial=0.0) < 0)
    top = float(np.nanmax(np.abs(values), initial=0.0))
    image = image_of(axes, values, top, signed)
    _tick_cells(axes, count, labels, 1, cell)
    say(axes, x="head", y="layer", title=f"importance by {shorten(by)}")
    colour_bar(axes, image)
    return axes
