"""Attention as a network of pipes: the most that can flow from a position down to a token.

Nodes stand in levels, with the tokens lowest. An edge leads from a position to what it reads, and
its capacity is the attention weight.
"""

from collections.abc import Sequence
from dataclasses import dataclass
from itertools import accumulate

import numpy as np
from scipy.sparse import block_array, csr_array
from scipy.sparse.csgraph import maximum_flow

from attlas.errors import UnsupportedModelError
from attlas.shapes import Capacities, LayerMap, NodesAbove, NodesBelow, TokenVector

SCALE = 2**30  # the solver counts in 32-bit integers, and no capacity is above one
TINY = 1e-30  # keeps a row without any weight at zero

Layer = tuple[str, np.ndarray]  # the kind of a site and its attention, `[query, key]`


@dataclass(frozen=True, eq=False)
class Pipes:
    """A finished network: capacities in units of 1 / SCALE, and which nodes can be reached.

    Rounding changes a flow by at most half a unit for each edge of its smallest cut.
    """

    capacities: csr_array  # `[node, node]`, from the row down to the column
    tops: range  # the nodes to flow from: the positions of the highest level
    tokens: Sequence[int]  # the nodes to flow to
    below: NodesBelow  # for each top, the nodes that can be reached from it
    above: NodesAbove  # for each token, the nodes that it can be reached from
    joins: Sequence[Capacities] = ()  # of a plain stack, between its levels, lowest first

    def flows(self, top: int, tokens: Sequence[int]) -> TokenVector:
        """The most that can flow from one top to each of these tokens, each on its own."""
        between = self.above[list(tokens)] & self.below[top]
        between[:, self.tokens] = False
        ways, chosen = np.unique(between, axis=0, return_inverse=True)
        ends, found = np.array(self.tokens)[list(tokens)], np.zeros(len(tokens))
        for number, way in enumerate(ways):  # in most models all tokens are reached the same way
            here = chosen.ravel() == number
            found[here] = self._flows_by(way, self.tops[top], ends[here])
        return found

    def _flows_by(self, way: np.ndarray, start: int, ends: np.ndarray) -> TokenVector:
        """The most that can flow to each of these ends through these nodes only."""
        if not way[start]:
            return np.zeros(len(ends))
        kept = np.union1d(np.flatnonzero(way), ends)
        capacities = self.capacities[kept][:, kept]
        first, *lasts = np.searchsorted(kept, [start, *ends]).tolist()
        flows = [maximum_flow(capacities, first, last, method="dinic").flow_value for last in lasts]
        return np.array(flows) / SCALE


class Network:
    """Builds Pipes: levels of nodes and the edges between them, from the tokens upwards."""

    def __init__(self, residual: float) -> None:
        self._residual = residual
        self._sizes: list[int] = []
        self._joins: list[tuple[int, int, np.ndarray]] = []
        self._tokens: list[int] = []

    def add_tokens(self, count: int) -> int:
        """Add a level of tokens, which flows end at."""
        self._tokens.append(len(self._sizes))
        return self._add_level(count)

    def add_copy(self, tokens: int) -> int:
        """Add a level that reads these tokens once more, shifted by one.

        Position j holds token j - 1, and the first position the start token, which counts as the
        last token.
        """
        level = self._add_level(self._sizes[tokens])
        return self._join(level, tokens, np.roll(np.eye(self._sizes[tokens]), -1, axis=1))

    def read_own(self, stream: int, layer: LayerMap) -> int:
        """Add the level above self-attention, which reads its own stream and keeps a share."""
        self._check(layer, stream, stream)
        kept, read = share_out(layer, self._residual)
        return self._join(self._add_level(len(layer)), stream, read + np.diag(kept))

    def read_other(self, stream: int, other: int, layer: LayerMap) -> int:
        """Add the level above cross-attention, which reads another stream and keeps a share."""
        self._check(layer, stream, other)
        kept, read = share_out(layer, self._residual)
        level = self._add_level(len(layer))
        self._join(level, other, read)
        return self._join(level, stream, np.diag(kept))

    def lay(self) -> Pipes:
        """The finished network; flows start from its highest level."""
        ends = list(accumulate(self._sizes))
        places = [range(end - size, end) for end, size in zip(ends, self._sizes, strict=True)]
        tokens = [node for level in self._tokens for node in places[level]]
        blocks: list[list[csr_array | None]] = [[None] * len(places) for _ in places]
        for level, size in enumerate(self._sizes):
            blocks[level][level] = csr_array((size, size), dtype=np.int32)
        above, below = (_marks(nodes, ends[-1]) for nodes in (tokens, places[-1]))
        for high, low, capacities in self._joins:
            blocks[high][low] = csr_array(capacities)
            above[:, places[high]] += above[:, places[low]] @ (capacities.T > 0) > 0
        for high, low, capacities in reversed(self._joins):
            below[:, places[low]] += below[:, places[high]] @ (capacities > 0) > 0
        laid = block_array(blocks, format="csr")
        return Pipes(laid, places[-1], tokens, below > 0, above > 0, self._plain_joins())

    def _plain_joins(self) -> list[Capacities]:
        """The joins of a plain stack, in which each level reads only the one below it."""
        levels = [(level + 1, level) for level in range(len(self._joins))]
        is_plain = [each[:2] for each in self._joins] == levels and len(self._tokens) == 1
        return [capacities for _, _, capacities in self._joins] if is_plain else []

    def _add_level(self, size: int) -> int:
        self._sizes.append(size)
        return len(self._sizes) - 1

    def _join(self, high: int, low: int, capacities: LayerMap) -> int:
        self._joins.append((high, low, np.rint(capacities * SCALE).astype(np.int32)))
        return high

    def _check(self, layer: LayerMap, stream: int, other: int) -> None:
        expected = self._sizes[stream], self._sizes[other]
        if layer.shape != expected:
            raise UnsupportedModelError(
                f"attention over {layer.shape[0]} × {layer.shape[1]} positions cannot be connected "
                f"to levels of {expected[0]} and {expected[1]}"
            )


def _marks(nodes: Sequence[int], count: int) -> np.ndarray:
    """One row for each of these nodes, with a 1 in its own column."""
    marks = np.zeros((len(nodes), count), dtype=np.float32)
    marks[range(len(nodes)), nodes] = 1
    return marks


def share_out(layer: LayerMap, residual: float) -> tuple[TokenVector, LayerMap]:
    """What each position keeps by the residual and what it reads from others; rows sum to 1."""
    total = residual + (1 - residual) * layer.sum(axis=1)
    total = np.maximum(total, TINY)
    return residual / total, (1 - residual) * layer / total[:, None]


def lay_stack(layers: Sequence[np.ndarray], residual: float, source: int) -> Pipes:
    """The network of one stack over `source` tokens; layers are lowest first."""
    network = Network(residual)
    stream = network.add_tokens(source)
    for layer in layers:
        stream = network.read_own(stream, layer)
    return network.lay()


def lay_encoder_decoder(
    layers: Sequence[Layer], residual: float, source: int, prefix: int | None
) -> Pipes:
    """The network of an encoder (if it has attention) and of the decoder that reads its top.

    The decoder starts from `prefix` tokens of its own; for None, from a copy of the source.
    """
    network = Network(residual)
    top = begin = network.add_tokens(source)
    second = next(i for i, (kind, _) in enumerate(layers) if kind in ("decoder", "cross"))
    for _, layer in layers[:second]:
        top = network.read_own(top, layer)
    stream = network.add_copy(begin) if prefix is None else network.add_tokens(prefix)
    for kind, layer in layers[second:]:
        if kind == "cross":
            stream = network.read_other(stream, top, layer)
        else:
            stream = network.read_own(stream, layer)
    return network.lay()
