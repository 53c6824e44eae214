"""Where the tokens of a tree stand in a drawing: across as in the text, down by layer.

The root stands above the middle of all others.
"""

from collections.abc import Mapping, Sequence
from typing import Any

from rich.cells import cell_len

from attlas.views.terminal import fit
from attlas.views.units import visible

SIGN, STORY = 8.0, 68.0  # the width of a sign, the height of a layer
BOX = 26.0  # the height of a token's box
_STEP, _GAP, _PAD, _MARGIN, _SIDE = 30.0, 10.0, 16.0, 12.0, 84.0
_LONGEST = 18  # signs of a label
_WIDE = 900.0  # up to here every token has a column of its own, so that no edge runs behind it


def lay_out_tree(tokens: Sequence[Mapping[str, Any]], nodes: Mapping[int, int]) -> dict[str, Any]:
    """The size of the drawing, the height of each layer in it, and the box of each token.

    `nodes` are places of tokens with the layer they are read in, the root's the highest. Boxes of
    one layer do not touch, and where there is room those of no two; layers that nothing is read in
    are left out.
    """
    layers = sorted(set(nodes.values()), reverse=True)
    heights = {layer: _MARGIN + BOX / 2 + STORY * row for row, layer in enumerate(layers)}
    root = max(nodes, key=nodes.__getitem__)
    placed = [
        _box(tokens[place], place, nodes[place], heights[nodes[place]])
        for place in sorted(set(nodes) - {root})
    ]
    roomy = sum(box["width"] + _GAP for box in placed) <= _WIDE
    boxes: list[dict[str, Any]] = []
    ends: dict[int, float] = {}  # where the boxes of each layer end so far
    last = _SIDE - _STEP
    for box in placed:
        taken = max(ends.values(), default=_SIDE) if roomy else ends.get(box["layer"], _SIDE)
        last = max(last + _STEP, taken + _GAP + box["width"] / 2)
        ends[box["layer"]] = last + box["width"] / 2
        boxes.append(box | {"x": last})
    top = _box(tokens[root], root, nodes[root], heights[nodes[root]])
    least = _SIDE + _GAP + top["width"] / 2
    middle = max((boxes[0]["x"] + boxes[-1]["x"]) / 2, least) if boxes else least
    return {
        "width": max([middle + top["width"] / 2, *ends.values()]) + _MARGIN,
        "height": max(heights.values()) + BOX / 2 + _MARGIN,
        "layers": [{"layer": layer, "y": height} for layer, height in heights.items()],
        "boxes": [top | {"x": middle}, *boxes],
    }


def _box(token: Mapping[str, Any], place: int, layer: int, height: float) -> dict[str, Any]:
    shown = visible(token["label"])
    label = fit(shown, min(cell_len(shown), _LONGEST)).rstrip()
    return {
        "position": place,
        "label": label,
        "layer": layer,
        "segment": token["segment"],
        "special": token["special"],
        "y": height,
        "width": SIGN * cell_len(label) + _PAD,
    }
