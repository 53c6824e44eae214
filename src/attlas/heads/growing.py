"""Attribution trees: of all attention between tokens, the few edges that brought the prediction.

Hao, Dong, Wei and Xu, "Self-Attention Attribution", AAAI 2021.

An edge says that in its layer the parent reads the child. A token is read into a tree once, and
reads others in the layers below.
"""

from collections.abc import Sequence

import numpy as np

from attlas.results.tree import Edge
from attlas.shapes import LayerMaps


def grow(attribution: LayerMaps, root: int, tau: float, cost: float) -> list[Edge]:
    """The tree from this root, layer by layer from the top.

    An edge needs more than `tau` of the largest attribution in its layer, and more than `cost`.
    A new token is read by that token in the tree above which gives it the largest attribution, so
    nothing that one layer can add to the objective is worth more; over layers this is greedy.
    """
    edges: list[Edge] = []
    inside = [root]
    for layer in reversed(range(len(attribution))):
        table = attribution[layer]
        least = max(tau * float(table.max()), cost, 0.0)
        found = [
            _best_edge(table, layer, inside, child)
            for child in range(len(table))
            if child not in inside
        ]
        added = [edge for edge in found if edge.attribution > least]
        edges += added
        inside += [edge.child for edge in added]
    return edges


def _best_edge(table: np.ndarray, layer: int, parents: Sequence[int], child: int) -> Edge:
    parent = max(parents, key=lambda each: float(table[each, child]))
    return Edge(layer, parent, child, float(table[parent, child]))


def grow_as_released(attribution: LayerMaps, root: int, tau: float) -> list[Edge]:
    """The tree as the authors' code grows it.

    It differs in that the last layer is left out, and that in the one below the root alone reads;
    the first token reads none, and its row does not count for the largest of a layer; tokens are
    visited in the order of the text, the first to read another keeps it, and one that was read
    in a layer may read others in the same.
    """
    edges: list[Edge] = []
    inside = {root}
    below = len(attribution) - 2
    for layer in range(below, -1, -1):
        table = attribution[layer]
        top = abs(float(table[1:].max(initial=-np.inf)))
        for parent in [root] if layer == below else range(1, len(table)):
            for child in range(len(table)):
                value = float(table[parent, child])
                if parent in inside and child not in inside and value > tau * top:
                    edges.append(Edge(layer, parent, child, value))
                    inside.add(child)
    return edges


def strongest_row(attribution: LayerMaps) -> int:
    """The token that reads most: its row, summed over layers, what is above zero, itself left out.

    The first token is left out where there are others, as in the authors' code.
    """
    summed = attribution.sum(axis=0).clip(min=0)
    np.fill_diagonal(summed, 0)
    rows = summed.sum(axis=1)
    return int(rows[1:].argmax()) + 1 if len(rows) > 1 else 0


def worth(edges: Sequence[Edge], cost: float) -> float:
    """The objective: the attribution of all edges, less the cost of each."""
    return sum((edge.attribution - cost for edge in edges), 0.0)


def kept_share(attribution: LayerMaps, edges: Sequence[Edge]) -> float:
    """The share of these edges in all attribution above zero from one token to another."""
    others = ~np.eye(attribution.shape[-1], dtype=bool)
    whole = float(attribution.clip(min=0)[:, others].sum())
    return worth(edges, 0.0) / whole if whole > 0 else 0.0
