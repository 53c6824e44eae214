"""Trees grown by hand and by brute force over all there are."""

from itertools import product

import numpy as np
import pytest

from attlas.heads.tree import grow, grow_as_released, kept_share, strongest_row, worth
from attlas.results import Edge


def maps(layers, tokens, *entries):
    table = np.zeros((layers, tokens, tokens))
    for layer, parent, child, value in entries:
        table[layer, parent, child] = value
    return table


def edges(*given):
    return [Edge(*each) for each in given]


# Three layers, four tokens: 0 reads 1 at the top; 1 reads 2 in the middle; both could read 3 below.
BY_HAND = maps(
    3, 4, (2, 0, 1, 0.5), (1, 1, 2, 0.3), (1, 3, 2, 0.9), (0, 1, 3, 0.2), (0, 2, 3, 0.25)
)


def test_a_case_worked_by_hand():
    # 3 -> 2 is the largest of its layer, but 3 is not in the tree then; 0.3 / 0.9 is above tau
    assert grow(BY_HAND, 0, 0.25, 0.0) == edges((2, 0, 1, 0.5), (1, 1, 2, 0.3), (0, 2, 3, 0.25))


def test_tau_is_a_share_of_the_largest_in_the_layer_and_must_be_exceeded():
    assert grow(BY_HAND, 0, 0.4, 0.0) == edges((2, 0, 1, 0.5), (0, 1, 3, 0.2))
    halves = maps(1, 3, (0, 0, 1, 0.5), (0, 0, 2, 1.0))
    assert grow(halves, 0, 0.5, 0.0) == edges((0, 0, 2, 1.0))


def test_an_edge_must_be_worth_more_than_it_costs():
    assert grow(BY_HAND, 0, 0.25, 0.3) == edges((2, 0, 1, 0.5))
    assert grow(BY_HAND, 0, 0.25, 0.22) == edges((2, 0, 1, 0.5), (1, 1, 2, 0.3), (0, 2, 3, 0.25))


def test_a_token_that_is_read_in_a_layer_reads_others_only_below_it():
    chain = maps(2, 3, (1, 0, 1, 1.0), (1, 1, 2, 1.0), (0, 1, 2, 0.5))
    assert grow(chain, 0, 0.1, 0.0) == edges((1, 0, 1, 1.0), (0, 1, 2, 0.5))


def test_the_diagonal_is_no_edge_but_counts_for_the_largest():
    table = maps(1, 2, (0, 0, 0, 1.0), (0, 0, 1, 0.3))
    assert grow(table, 0, 0.2, 0.0) == edges((0, 0, 1, 0.3))
    assert grow(table, 0, 0.4, 0.0) == []


def test_where_nothing_is_above_zero_nothing_grows():
    assert grow(-np.ones((2, 3, 3)), 1, 0.0, 0.0) == []
    assert kept_share(-np.ones((2, 3, 3)), []) == 0.0


def every_tree(table, root, tau):
    """All trees there are: each token is read in one layer, by one that was read above, or not."""
    layers, tokens, _ = table.shape
    others = [token for token in range(tokens) if token != root]
    choices = [
        None,
        *((layer, parent) for layer in range(layers) for parent in range(tokens)),
    ]
    for picked in product(choices, repeat=len(others)):
        read = {root: layers}
        read |= {child: pick[0] for child, pick in zip(others, picked, strict=True) if pick}
        found = [
            Edge(pick[0], pick[1], child, float(table[pick[0], pick[1], child]))
            for child, pick in zip(others, picked, strict=True)
            if pick
        ]
        if all(
            read.get(edge.parent, -1) > edge.layer
            and edge.attribution > tau * table[edge.layer].max()
            for edge in found
        ):
            yield found


@pytest.mark.parametrize("seed", range(6))
@pytest.mark.parametrize("cost", [0.0, 0.3])
def test_greedy_is_one_of_all_trees_and_never_worth_more_than_the_best(seed, cost):
    table = np.random.default_rng(seed).normal(size=(2, 4, 4)).clip(min=-0.5)
    grown = grow(table, 0, 0.1, cost)
    trees = list(every_tree(table, 0, 0.1))
    assert sorted(grown, key=lambda e: e.child) in trees
    assert worth(grown, cost) <= max(worth(each, cost) for each in trees) + 1e-12


@pytest.mark.parametrize("seed", range(6))
def test_greedy_is_best_in_one_layer(seed):
    table = np.random.default_rng(seed).normal(size=(1, 4, 4))
    best = max(worth(each, 0.2) for each in every_tree(table, 1, 0.1))
    assert worth(grow(table, 1, 0.1, 0.2), 0.2) == pytest.approx(best)


@pytest.mark.parametrize("seed", range(8))
def test_greedy_is_best_where_a_token_can_be_read_in_one_layer_only_and_edges_cost_nothing(seed):
    """No token can then be read too early, and each that is read lets others be read."""
    random = np.random.default_rng(seed)
    own = random.integers(3, size=4)
    table = random.random((3, 4, 4)) * (np.arange(3)[:, None] == own)[:, None, :]
    best = max(worth(each, 0.0) for each in every_tree(table, 0, 0.2))
    assert worth(grow(table, 0, 0.2, 0.0), 0.0) == pytest.approx(best)


def test_greedy_is_not_best_where_it_reads_too_early():
    table = maps(2, 2, (1, 0, 1, 0.1), (0, 0, 1, 1.0))
    assert worth(grow(table, 0, 0.4, 0.0), 0.0) == 0.1
    assert max(worth(each, 0.0) for each in every_tree(table, 0, 0.4)) == 1.0
    assert worth(grow(table, 0, 0.4, 0.2), 0.0) == 1.0  # a cost lets it wait


def test_the_released_variant_by_hand():
    """Of four layers the last is left out; in layer 2 the root alone reads."""
    table = maps(
        4,
        5,
        (3, 2, 1, 9.0),
        (2, 2, 3, 0.5),
        (2, 3, 4, 1.0),
        (1, 3, 4, 0.5),
        (1, 0, 1, 5.0),  # the first token reads none, and its row does not count
        (1, 4, 0, 0.45),  # read and reading in one layer
        (0, 2, 1, 1.0),
        (0, 3, 1, 2.0),  # comes later in the text than 2
    )
    expected = edges((2, 2, 3, 0.5), (1, 3, 4, 0.5), (1, 4, 0, 0.45), (0, 2, 1, 1.0))
    assert grow_as_released(table, 2, 0.4) == expected
    assert grow_as_released(table[:1], 2, 0.4) == []


def test_the_strongest_row_leaves_out_the_first_token_itself_and_what_is_below_zero():
    table = maps(
        2, 4, (0, 0, 1, 9.0), (0, 1, 1, 9.0), (0, 2, 1, 1.0), (0, 2, 3, -8.0), (1, 3, 1, 0.5)
    )
    assert strongest_row(table) == 2


def test_the_share_that_is_kept():
    table = maps(1, 3, (0, 0, 0, 5.0), (0, 0, 1, 1.0), (0, 0, 2, 3.0), (0, 1, 2, -7.0))
    assert kept_share(table, grow(table, 0, 0.5, 0.0)) == 0.75
