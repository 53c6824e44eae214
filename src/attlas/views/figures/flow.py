"""Flow: what a prediction is made of, followed down through the layers as ribbons."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.patches import PathPatch
from matplotlib.path import Path
from numpy.typing import NDArray

from attlas.errors import UnknownNameError, UsageError
from attlas.views.colours import css
from attlas.views.figures import figure
from attlas.views.figures.paper import (
    HIGHEST,
    PAPER,
    RULE,
    Room,
    name_ticks,
    quiet_axes,
    say,
    widest,
)
from attlas.views.figures.weights import DrawnSite, all_sites

Payload = Mapping[str, Any]
_LAYER = 0.42  # inches from layer to layer
_FAINT = 0.008  # ribbons of a smaller share of the whole are left out
_WHOLE = 0.34  # inches: the width of a ribbon that holds everything
_NAME = 0.16


@figure("maps", "flow")
@figure("explanation", "flow")
def flow(
    room: Room,
    payload: Payload,
    *,
    token: int | None = None,
    residual: float | int = 0.5,
    kind: str | None = None,
) -> Any:
    """Ribbons from the token that is read down to the words, as attention rollout follows them.

    All starts at `token`: the one that the target is read at, or the last of a decoder, or a
    special first one; otherwise at all tokens alike. In each layer, the share `residual` of what
    a token holds stays, and the rest goes where the heads look on average (weights below zero
    count as zero).
    """
    if not 0 <= residual <= 1:
        raise UsageError(f"residual is a share from 0 to 1, not {residual!r}")
    sites = _chain(all_sites(payload), kind)
    start, told = _start(payload, sites, token)
    edges = flows(sites, start, float(residual))
    count, labels = len(sites[0].queries), sites[0].query_labels
    left = 0.05 + _NAME + widest([str(site.layer) for site in sites])
    pitch = (room.width - left - 0.05 - _WHOLE / 2) / count
    high = min(_LAYER * len(sites), HIGHEST - 1.5)
    bottom = widest(labels) + 0.08
    axes = room.axes(high, left=left, right=0.05, bottom=bottom, top=0.2)
    edge = max(0.5, _WHOLE / pitch / 2)
    axes.set(xlim=(-edge, count - 1 + edge), ylim=(0, len(sites)))
    for number, moved in enumerate(edges):
        _draw_layer(axes, moved, number, _WHOLE / pitch)
    quiet_axes(axes)
    name_ticks(axes, "x", labels, pitch)
    axes.set_yticks([place + 0.5 for place in range(len(sites))])
    axes.set_yticklabels([str(site.layer) for site in sites], parse_math=False)
    axes.tick_params(length=0, pad=2)
    for place in range(len(sites) + 1):
        axes.axhline(place, color=RULE, linewidth=0.3, zorder=0)
    say(axes, y="layer", title=f"{payload['maps']['shows']}, followed down from {told}")
    return axes


def flows(
    sites: Sequence[DrawnSite], start: NDArray[np.float64], residual: float
) -> list[NDArray[np.float64]]:
    """What goes from each token above to each token below, for each layer from the lowest up."""
    held, found = start, []
    for site in reversed(sites):
        seen = np.maximum(site.weights.mean(axis=0), 0.0)
        sums = seen.sum(axis=1, keepdims=True)
        shares = np.divide(seen, sums, out=np.eye(len(seen)), where=sums > 0)
        moved = held[:, None] * (residual * np.eye(len(seen)) + (1 - residual) * shares)
        found.append(moved)
        held = moved.sum(axis=0)
    return found[::-1]


def _chain(sites: Sequence[DrawnSite], kind: str | None) -> list[DrawnSite]:
    """The sites of one kind whose tokens look at the same tokens, from the lowest up."""
    kinds: dict[str, list[DrawnSite]] = {}
    for site in sites:
        if site.queries == site.keys:
            kinds.setdefault(site.kind, []).append(site)
    kinds = {name: own for name, own in kinds.items() if len({each.keys for each in own}) == 1}
    if not kinds:
        raise UsageError("no layers follow each other here: their tokens do not look at themselves")
    if kind is not None and kind not in kinds:
        raise UnknownNameError("kind of layer", kind, kinds)
    return kinds[kind or next(iter(kinds))]


def _start(
    payload: Payload, sites: Sequence[DrawnSite], token: int | None
) -> tuple[NDArray[np.float64], str]:
    places = sites[0].queries
    count = len(places)
    read = (payload.get("target") or {}).get("position") if token is None else token
    if token is not None and token not in places:
        raise UsageError(f"no token {token!r}: the layers read tokens {places[0]} to {places[-1]}")
    if read not in places and sites[0].kind == "decoder":
        read = places[-1]
    if read not in places and payload["tokens"][places[0]]["special"]:
        read = places[0]
    if read not in places:
        return np.full(count, 1 / count), "all tokens alike"
    start = np.zeros(count)
    start[places.index(read)] = 1.0
    return start, sites[0].labels[read]


def _draw_layer(axes: Any, moved: NDArray[np.float64], number: int, scale: float) -> None:
    """The ribbons of one layer, side by side at their tokens; what stays is in grey."""
    above = _edges(moved, scale)
    below = _edges(moved.T, scale).T
    for query, key in np.argwhere(moved > _FAINT):
        width = moved[query, key] * scale
        hue = RULE if query == key else css(PAPER.plain)
        _ribbon(axes, above[query, key], below[query, key], width, number, hue)


def _edges(moved: NDArray[np.float64], scale: float) -> NDArray[np.float64]:
    """Where each ribbon starts at its token (rows), the ribbons centred on it, side by side."""
    widths = moved * scale
    before = np.cumsum(widths, axis=1) - widths
    middle = widths.sum(axis=1, keepdims=True) / 2
    return np.asarray(np.arange(len(moved))[:, None] - middle + before)


def _ribbon(axes: Any, above: float, below: float, width: float, number: int, hue: str) -> None:
    high, low, middle = number + 1.0, float(number), number + 0.5
    points = [
        (above, high),
        (above, middle),
        (below, middle),
        (below, low),
        (below + width, low),
        (below + width, middle),
        (above + width, middle),
        (above + width, high),
        (above, high),
    ]
    curve = [Path.CURVE4] * 3
    codes = [Path.MOVETO, *curve, Path.LINETO, *curve, Path.CLOSEPOLY]
    share = 0.75 if hue != RULE else 0.6
    axes.add_patch(PathPatch(Path(points, codes), facecolor=hue, alpha=share, linewidth=0))
