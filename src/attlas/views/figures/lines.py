"""Lines between tokens: where the heads of a layer look."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from matplotlib.collections import LineCollection
from matplotlib.colors import to_rgba

from attlas.errors import UsageError
from attlas.views.colours import css
from attlas.views.figures import figure
from attlas.views.figures.paper import (
    HIGHEST,
    LINE,
    PAPER,
    QUIET,
    TINTS,
    Room,
    say,
    text_width,
    widest,
    write,
)
from attlas.views.figures.weights import DrawnSite, one_site

Payload = Mapping[str, Any]
_FAINT = 0.08  # lines below this share of the largest weight are left out


@figure("maps", "lines")
@figure("explanation", "lines")
def lines(
    room: Room,
    payload: Payload,
    *,
    layer: int | str | None = None,
    head: int | Sequence[int] | None = None,
) -> Any:
    """Lines from each token (left) to those it attends to, thicker for more weight.

    Without `head` they are the mean over the heads of the layer; several heads have colours.
    """
    site = one_site(payload, layer)
    chosen = _heads(site, head)
    count = max(len(site.queries), len(site.keys))
    pitch = min(LINE, HIGHEST / max(1, count))
    left, right = widest(site.query_labels) + 0.08, widest(site.key_labels) + 0.08
    low = 0.2 if len(chosen) > 1 else 0.02
    axes = room.axes(pitch * count, left=left, right=right, bottom=low, top=0.2)
    axes.set(xlim=(0, 1), ylim=(count - 0.5, -0.5))
    axes.set_axis_off()
    for place, number in enumerate(chosen):
        tint = TINTS[place % len(TINTS)]
        signed = bool(payload["maps"]["signed"]) and len(chosen) == 1
        _draw_head(axes, site.head(number), tint, signed)
    step = max(1, int(np.ceil(LINE * 0.8 / pitch)))
    for row in range(0, len(site.queries), step):
        write(axes, -0.02, row, site.query_labels[row], ha="right", va="center")
    for row in range(0, len(site.keys), step):
        write(axes, 1.02, row, site.key_labels[row], ha="left", va="center")
    which = "mean over heads" if chosen == [None] else ""
    which = which or ("" if len(chosen) > 1 else f"head {chosen[0]}")
    parts = [payload["maps"]["shows"], site.title, which]
    say(axes, title=" · ".join(part for part in parts if part))
    if len(chosen) > 1:
        _draw_legend(axes, [number for number in chosen if number is not None], count, pitch)
    return axes


def _heads(site: DrawnSite, head: int | Sequence[int] | None) -> list[int | None]:
    given = [head] if head is None or isinstance(head, int) else list(head)
    if not given:
        raise UsageError(f"head takes a number or several, from 0 to {len(site.weights) - 1}")
    for each in given:
        site.head(each)  # refuses a head that is not there
    return [None if each is None else each % len(site.weights) for each in given]


def _draw_head(axes: Any, weights: Any, tint: str, signed: bool) -> None:
    top = float(np.abs(weights).max(initial=0.0)) or 1.0
    queries, keys = np.nonzero(np.abs(weights) > _FAINT * top)
    shares = weights[queries, keys] / top
    order = np.argsort(np.abs(shares), kind="stable")  # the strongest above the others
    poles = (css(PAPER.favour), css(PAPER.against)) if signed else (tint, tint)
    hues = [
        to_rgba(poles[int(share < 0)], 0.08 + 0.82 * float(share) ** 2) for share in shares[order]
    ]
    ends = [[(0.0, q), (1.0, k)] for q, k in zip(queries[order], keys[order], strict=True)]
    widths = 0.3 + 1.6 * np.abs(shares[order])
    axes.add_collection(LineCollection(ends, colors=hues, linewidths=widths), autolim=False)


def _draw_legend(axes: Any, heads: Sequence[int], count: int, pitch: float) -> None:
    inches = float(axes.get_position().width * axes.get_figure(root=True).get_size_inches()[0])
    x = 0.0
    below = count - 0.5 + 0.1 / pitch
    write(axes, x, below, "head", color=QUIET, va="center")
    x += (text_width("head") + 0.08) / inches
    for place, head in enumerate(heads):
        hue = TINTS[place % len(TINTS)]
        write(axes, x, below, str(head), color=hue, va="center", weight="bold")
        x += (text_width(str(head)) + 0.1) / inches
