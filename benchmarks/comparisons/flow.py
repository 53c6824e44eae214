"""Attention flow, against networkx's Edmonds–Karp, which the first code used.

A model of 6 layers, 32 tokens; half of each layer bypasses the attention. networkx starts from a
finished graph and computes the flows from the first position to every token; ours is the whole call
and, inside, the flows from the layers.
"""

from collections.abc import Iterator
from functools import partial

import networkx
import numpy as np
from comparing import Row, Setup, largest_difference
from networkx.algorithms.flow import edmonds_karp
from shapes import bert, texts_of

import attlas
from attlas.methods.support.flow import lay_stack

Layers = list[np.ndarray]


def compare(setup: Setup) -> Iterator[Row]:
    if setup.on_gpu:
        return  # flows are computed on a processor
    depth, tokens = setup.size((6, 32), (2, 8))
    subject = bert("cpu", layers=depth)
    (text,) = texts_of(subject, [tokens])
    layers = [each.mean(0).astype(np.float64) for each in subject.attention(text).weights]
    work = partial(attlas.explain, subject, text, "attention_flow")
    ours, behind = setup.in_turns(work, partial(_ours, layers))
    peer, flows = setup.timed(partial(_networkx, _graph(layers)))
    off = largest_difference([work().scores], [flows / flows.sum()])
    what = f"`attention_flow`, {depth} layers, {tokens} tokens"
    yield Row(what, "networkx, Edmonds–Karp", ours, peer, behind, off)


def _ours(layers: Layers) -> np.ndarray:
    return lay_stack(layers, 0.5, len(layers[0])).flows(0, range(len(layers[0])))


def _graph(layers: Layers) -> networkx.DiGraph:
    graph = networkx.DiGraph(depth=len(layers), size=len(layers[0]))
    for level, layer in enumerate(layers):
        for (above, below), weight in np.ndenumerate((layer + np.eye(len(layer))) / 2):
            graph.add_edge((level + 1, above), (level, below), capacity=float(weight))
    return graph


def _networkx(graph: networkx.DiGraph) -> np.ndarray:
    depth, size = graph.graph["depth"], graph.graph["size"]
    flows = [
        networkx.maximum_flow_value(graph, (depth, 0), (0, token), flow_func=edmonds_karp)
        for token in range(size)
    ]
    return np.array(flows)
