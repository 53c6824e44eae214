"""Flows against smallest cuts counted out, closed forms and networkx on graphs of its own."""

import os
from itertools import product

import networkx
import numpy as np
import pytest
from subjects import random_attention

from attlas import progress
from attlas.errors import AttlasError, UnsupportedModelError
from attlas.methods.support import flow_maps as mapping
from attlas.methods.support.flow import (
    SCALE,
    Pipes,
    lay_encoder_decoder,
    lay_stack,
    share_out,
)
from attlas.methods.support.flow_maps import flow_maps, shared_flows

RESIDUALS = [0.0, 0.5, 0.8]


def attention(*shape, seed=0, causal=False):
    return random_attention(*shape, seed=seed, causal=causal).numpy()


def with_bypass(layer, residual):
    """The layer with its bypass, rows summing to one, as the paper writes it."""
    mixed = residual * np.eye(len(layer)) + (1 - residual) * layer
    return mixed / mixed.sum(-1, keepdims=True)


def lay(layers, residual):
    return lay_stack(list(layers), residual, len(layers[0]))


def all_flows(pipes):
    tokens = range(len(pipes.tokens))
    return np.stack([pipes.flows(top, tokens) for top in range(len(pipes.tops))])


def edges_of_stack(layers, residual):
    """Every edge of a stack as (from, to, capacity); a node is (level, position)."""
    return [
        ((level + 1, above), (level, below), weight)
        for level, layer in enumerate(layers)
        for (above, below), weight in np.ndenumerate(with_bypass(layer, residual))
    ]


def edges_of_pair(encoder, decoder, cross, residual):
    """Of an encoder–decoder: nodes are (stream, level, position), the encoder's top read by all."""
    edges = [
        (("source", *above), ("source", *below), weight)
        for above, below, weight in edges_of_stack(encoder, residual)
    ]
    for level, (own, other) in enumerate(zip(decoder, cross, strict=True)):
        for (i, j), weight in np.ndenumerate(with_bypass(own, residual)):
            edges.append((("within", level, i), ("prefix", level, j), weight))
        for i, row in enumerate(other):
            total = residual + (1 - residual) * row.sum()
            here = ("prefix", level + 1, i)
            edges.append((here, ("within", level, i), residual / total))
            for k, weight in enumerate(row):
                taken = (1 - residual) * weight / total
                edges.append((here, ("source", len(encoder), k), taken))
    return edges


def largest_flow(edges, start, end):
    graph = networkx.DiGraph()
    graph.add_nodes_from([start, end])
    for above, below, weight in edges:
        graph.add_edge(above, below, capacity=float(weight))
    return networkx.maximum_flow_value(graph, start, end)


def smallest_cut(edges, start, end):
    """Over every set of nodes with the start in and the end out, what leaves it: the least."""
    nodes = sorted({node for edge in edges for node in edge[:2]} - {start, end})
    least = np.inf
    for side in product([False, True], repeat=len(nodes)):
        inside = {start, *(node for node, within in zip(nodes, side, strict=True) if within)}
        leaving = sum(w for a, b, w in edges if a in inside and b not in inside)
        least = min(least, leaving)
    return least


@pytest.mark.parametrize(("depth", "size"), [(1, 3), (2, 3), (3, 2)])
def test_equals_the_smallest_cut(depth, size):
    layers = attention(depth, size, size)
    edges, found = edges_of_stack(layers, 0.5), all_flows(lay(layers, 0.5))
    for top, token in product(range(size), repeat=2):
        expected = smallest_cut(edges, (depth, top), (0, token))
        assert found[top, token] == pytest.approx(expected, abs=1e-8)


def test_three_layers_of_three_equal_the_smallest_cut():
    layers = attention(3, 3, 3)
    kept = [e for e in edges_of_stack(layers, 0.5) if e[0][0] < 3 or e[0] == (3, 1)]
    kept = [e for e in kept if e[1][0] > 0 or e[1] == (0, 2)]  # the others lead nowhere
    found = lay(layers, 0.5).flows(1, [2])
    assert found[0] == pytest.approx(smallest_cut(kept, (3, 1), (0, 2)), abs=1e-8)


def test_two_tokens_by_hand():
    layers = [np.array([[0.7, 0.3], [0.4, 0.6]]), np.array([[0.5, 0.5], [0.2, 0.8]])]
    pipes = lay(layers, 0.5)
    np.testing.assert_allclose(all_flows(pipes), [[0.95, 0.40], [0.30, 0.90]], atol=1e-8)
    (rows,) = flow_maps([pipes], np.ones((1, 2), dtype=bool), 1)
    np.testing.assert_allclose(rows, [[19 / 27, 8 / 27], [0.25, 0.75]], atol=1e-8)


@pytest.mark.parametrize("residual", RESIDUALS)
def test_one_layer_is_the_layer_with_its_bypass(residual):
    (layer,) = attention(1, 5, 5)
    found = all_flows(lay([layer], residual))
    np.testing.assert_allclose(found, with_bypass(layer, residual), atol=1e-9)


@pytest.mark.parametrize("residual", RESIDUALS)
@pytest.mark.parametrize("causal", [False, True])
def test_two_layers_in_closed_form(residual, causal):
    layers = attention(2, 7, 7, causal=causal)
    low, high = (with_bypass(layer, residual) for layer in layers)
    expected = np.minimum(high[:, :, None], low[None]).sum(1)
    np.testing.assert_allclose(all_flows(lay(layers, residual)), expected, atol=1e-8)


@pytest.mark.parametrize("causal", [False, True])
def test_six_layers_of_twelve_equal_networkx(causal):
    layers = attention(6, 12, 12, causal=causal)
    edges, found = edges_of_stack(layers, 0.5), lay(layers, 0.5).flows(11, range(12))
    expected = [largest_flow(edges, (6, 11), (0, token)) for token in range(12)]
    np.testing.assert_allclose(found, expected, rtol=0, atol=1e-6)
    assert len(set(np.round(expected, 6))) > 2


@pytest.mark.parametrize(("depth", "share"), [(6, 0.7), (8, 1.0)])
def test_hubs_prove_what_a_search_finds(depth, share):
    layers = attention(depth, 16, 16)
    pipes = lay(layers, 0.5)
    found = shared_flows(pipes.joins, range(16)) / SCALE
    known = ~np.isnan(found)
    assert known.mean() >= share
    np.testing.assert_allclose(found[known], all_flows(pipes)[known], rtol=0, atol=16 / SCALE)
    expected = largest_flow(edges_of_stack(layers, 0.5), (depth, 3), (0, 5))
    assert known[3, 5] and found[3, 5] == pytest.approx(expected, abs=1e-7)


def test_a_bottleneck_is_not_proven_away():
    """The third layer reads next to nothing from others: no trivial cut is the smallest."""
    layers = attention(6, 12, 12)
    layers[2] = np.eye(12)
    pipes = lay(layers, 0.9)
    found, expected = shared_flows(pipes.joins, range(12)) / SCALE, all_flows(pipes)
    known = ~np.isnan(found)
    np.testing.assert_allclose(found[known], expected[known], rtol=0, atol=12 / SCALE)
    (rows,) = flow_maps([pipes], np.ones((1, 12), dtype=bool), 1)
    np.testing.assert_allclose(rows, expected / expected.sum(1, keepdims=True), atol=1e-7)
    assert np.median(expected) < 0.5


def test_flows_that_are_known_are_not_searched_for(monkeypatch):
    monkeypatch.setattr(Pipes, "flows", lambda *_: pytest.fail("a pair was searched for"))
    for depth in (1, 2, 8):
        layers = attention(depth, 16, 16)
        (rows,) = flow_maps([lay(layers, 0.5)], np.ones((1, 16), dtype=bool), 1)
        np.testing.assert_allclose(rows.sum(1), 1)


def test_causal_flows_never_come_from_later_tokens():
    pipes = lay(attention(4, 6, 6, causal=True), 0.5)
    assert not np.triu(all_flows(pipes), 1).any()
    assert pipes.flows(0, range(6)).tolist() == [1, 0, 0, 0, 0, 0]


@pytest.mark.parametrize("residual", RESIDUALS)
@pytest.mark.parametrize("depth", [0, 2])  # of the encoder
def test_encoder_decoder_equals_networkx(residual, depth):
    encoder, decoder = attention(depth, 4, 4), attention(3, 3, 3, seed=1, causal=True)
    cross = attention(3, 3, 4, seed=2) * 0.8  # a sink took the rest
    layers = [("encoder", layer) for layer in encoder]
    for own, other in zip(decoder, cross, strict=True):
        layers += [("decoder", own), ("cross", other)]
    found = all_flows(lay_encoder_decoder(layers, residual, 4, 3))
    edges = edges_of_pair(encoder, decoder, cross, residual)
    ends = [("source", 0, i) for i in range(4)] + [("prefix", 0, i) for i in range(3)]
    for top, (token, end) in product(range(3), enumerate(ends)):
        expected = largest_flow(edges, ("prefix", 3, top), end)
        assert found[top, token] == pytest.approx(expected, abs=1e-6)
    assert found[:, :4].any() and found[:, 4:].any() == (residual > 0)


def test_a_copy_of_the_source_ends_in_the_same_tokens():
    encoder, decoder = attention(2, 4, 4), attention(2, 4, 4, seed=1, causal=True)
    cross = attention(2, 4, 4, seed=2)
    layers = [("encoder", layer) for layer in encoder]
    for own, other in zip(decoder, cross, strict=True):
        layers += [("decoder", own), ("cross", other)]
    found = all_flows(lay_encoder_decoder(layers, 0.5, 4, None))
    edges = edges_of_pair(encoder, decoder, cross, 0.5)
    same = {("prefix", 0, place): ("source", 0, token) for place, token in enumerate((3, 0, 1, 2))}
    edges = [(above, same.get(below, below), weight) for above, below, weight in edges]
    for top, token in product(range(4), repeat=2):
        expected = largest_flow(edges, ("prefix", 2, top), ("source", 0, token))
        assert found[top, token] == pytest.approx(expected, abs=1e-6)


def test_shares_sum_to_one_and_an_empty_row_stays_empty():
    layer = np.array([[0.2, 0.3], [0.0, 0.0]])
    kept, read = share_out(layer, 0.5)
    np.testing.assert_allclose(kept + read.sum(1), 1)
    kept, read = share_out(layer, 0.0)
    np.testing.assert_allclose(kept, 0)
    np.testing.assert_allclose(read, [[0.4, 0.6], [0, 0]])


def test_rounding_is_within_its_bound():
    """Equal thirds cannot be written in units of 2**-30: the cut at the top has three of them."""
    found = lay(np.full((3, 3, 3), 1 / 3), 0.0).flows(0, [0])
    assert 0 < abs(found[0] - 1) <= 3 / 2 / SCALE


def test_only_wanted_rows_are_filled():
    pipes = lay(attention(3, 5, 5), 0.5)
    wanted = np.array([[False, True, False, True, False]])
    (found,) = flow_maps([pipes], wanted, 1)
    np.testing.assert_allclose(found.sum(1), wanted[0])
    flows = pipes.flows(3, range(5))
    np.testing.assert_allclose(found[3], flows / flows.sum())


def test_more_tokens_than_one_portion(monkeypatch):
    pipes, wanted = [lay(attention(3, 5, 5), 0.5)], np.ones((1, 5), dtype=bool)
    (expected,) = flow_maps(pipes, wanted, 1)
    monkeypatch.setattr(mapping, "PORTION", 2)
    (found,) = flow_maps(pipes, wanted, 1)
    assert np.array_equal(found, expected)


@pytest.mark.slow
def test_a_failing_worker_is_one_clear_error():
    broken = lay(attention(2, 3, 3), 0.5)
    with pytest.raises(AttlasError, match=r"a worker process .* failed \(IndexError.*processes=1"):
        list(mapping._work([broken], [(0, 8, range(1))], 1))


def test_whoever_watches_is_told_how_far_it_is():
    network = [lay(attention(3, 5, 5), 0.5)]
    seen = []
    with progress.watched(None, "here"):
        line = progress._SHOWN.get()
        line.take = seen.append
        flow_maps(network, np.ones((1, 5), dtype=bool), 1)
    assert [step.done for step in seen] == list(range(1, seen[-1].total + 1))
    assert seen[0].left > 0 and seen[-1].left == 0


class Deadly(Pipes):
    """Ends the process that it is handed to."""

    def __reduce__(self):
        return os._exit, (3,)


@pytest.mark.slow
def test_a_killed_worker_is_one_clear_error():
    with pytest.raises(AttlasError, match=r"a worker process .* failed \(BrokenProcessPool"):
        list(mapping._work([object.__new__(Deadly)], [(0, 0, range(1))], 1))


def test_a_layer_that_does_not_fit_is_refused():
    with pytest.raises(UnsupportedModelError, match=r"2 × 2 positions .* levels of 4 and 4"):
        lay_stack([attention(4, 4), attention(2, 2)], 0.5, 4)
    with pytest.raises(UnsupportedModelError, match=r"4 × 4 positions .* levels of 5 and 5"):
        lay_stack([attention(4, 4)], 0.5, 5)
