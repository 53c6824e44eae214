"""Ranks against the laws that they follow, and other attention against the definition of it."""

from itertools import combinations

import numpy as np
import pytest
import torch

from attlas.mathematics.identifying import condition, conicity, nullities, query_ranks
from attlas.trials.searching.other_attention import farthest_alternative

LENGTHS, WIDTHS = (2, 5, 8, 9, 10, 24), (1, 4, 8)


def drawn(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


def all_seen(length):
    return torch.ones(1, length, dtype=torch.bool)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("width", WIDTHS)
def test_the_law_of_ranks(length, width):
    rank, free, constrained = nullities(drawn(length, width), all_seen(length))
    assert rank == min(length, width)
    assert free == max(length - width, 0)
    assert constrained == max(length - width - 1, 0)


@pytest.mark.parametrize("width", WIDTHS)
def test_a_causal_row_is_free_in_what_it_sees(width):
    length = 12
    for seen in range(1, length + 1):
        visible = (torch.arange(length) < seen)[None]
        _, free, constrained = nullities(drawn(length, width), visible)
        assert (free, constrained) == (max(seen - width, 0), max(seen - width - 1, 0))


def test_equal_values_leave_the_weights_open_whatever_the_length():
    values = drawn(1, 8).expand(4, 8)
    rank, free, constrained = nullities(values, all_seen(4))
    assert (rank, free, constrained) == (1, 3, 3)


@pytest.mark.parametrize("length", LENGTHS)
@pytest.mark.parametrize("width", WIDTHS)
@pytest.mark.parametrize("of_keys", WIDTHS)
def test_the_law_of_what_a_query_can_reach(length, width, of_keys):
    weights = (drawn(1, length, seed=3) / 2).softmax(-1)
    values, keys = drawn(length, width, seed=1), drawn(length, of_keys, seed=2)
    moved, free = query_ranks(weights, values, keys, all_seen(length))
    assert free == min(of_keys, length - 1)
    assert moved == min(width, of_keys, length - 1)


@pytest.mark.parametrize(("width", "identifiable"), [(64, True), (32, False)])
def test_more_tokens_than_width_may_still_be_told_through_the_query(width, identifiable):
    weights = (drawn(1, 128, seed=3) / 4).softmax(-1)
    values, keys = drawn(128, width, seed=1), drawn(128, 64, seed=2)
    _, _, constrained = nullities(values, all_seen(128))
    assert constrained == 128 - width - 1
    moved, free = query_ranks(weights, values, keys, all_seen(128))
    assert (moved == free) == identifiable


def test_the_output_moves_with_the_query_as_autograd_says():
    values, keys, query = drawn(9, 3, seed=1), drawn(9, 5, seed=2), drawn(5, seed=3)

    def output(query):
        return (keys @ query).softmax(0) @ values

    jacobian = torch.autograd.functional.jacobian(output, query)
    weights = (keys @ query).softmax(0)[None]
    moved, _ = query_ranks(weights, values, keys, all_seen(9))
    assert moved == torch.linalg.matrix_rank(jacobian)


def test_keys_that_are_not_seen_do_not_count():
    visible = (torch.arange(9) < 4)[None]
    weights = drawn(1, 9).masked_fill(~visible, -torch.inf).softmax(-1)
    moved, free = query_ranks(weights, drawn(9, 6, seed=1), drawn(9, 6, seed=2), visible)
    assert (moved, free) == (3, 3)


def test_vectors_of_one_direction_and_of_all():
    one_way = torch.tensor([[1.0, 2.0], [2.0, 4.0], [0.5, 1.0]])
    assert conicity(one_way).item() == pytest.approx(1)
    assert condition(one_way).item() == pytest.approx(1 / torch.finfo(torch.float32).eps)
    around = torch.tensor([[1.0, 0.0], [0.0, 1.0], [-1.0, 0.0], [0.0, -1.0]])
    assert conicity(around).item() == pytest.approx(0)
    assert condition(around).item() == pytest.approx(1)
    assert condition(torch.diag(torch.tensor([6.0, 3.0, 2.0]))).item() == pytest.approx(3)


@pytest.mark.parametrize(("length", "width"), [(4, 2), (12, 8), (30, 8), (40, 32)])
def test_other_weights_with_the_same_output(length, width):
    for seed in range(3):
        weights = drawn(length, seed=seed).softmax(0).numpy()
        values = drawn(length, width, seed=seed + 10).numpy()
        found = farthest_alternative(weights, values)
        assert (found.weights >= 0).all()
        assert found.weights.sum() == pytest.approx(1, abs=1e-12)
        np.testing.assert_allclose(found.weights @ values, weights @ values, atol=1e-8)
        assert found.error <= 1e-8
        assert found.distance == pytest.approx(np.abs(found.weights - weights).sum() / 2)
        assert found.distance > 0.01


def test_with_one_way_to_go_it_goes_to_the_farther_end():
    weights = np.array([0.5, 0.3, 0.2])
    values = np.array([[1.0], [0.0], [2.0]])  # the way that keeps both is (1, −½, −½)
    found = farthest_alternative(weights, values)
    np.testing.assert_allclose(found.weights, [0.0, 0.55, 0.45], atol=1e-9)
    assert found.distance == pytest.approx(0.5)


def test_where_nothing_is_read_all_weight_can_go_to_the_least():
    weights = np.array([0.5, 0.3, 0.2])
    found = farthest_alternative(weights, np.ones((3, 4)))
    np.testing.assert_allclose(found.weights, [0, 0, 1], atol=1e-9)


def test_independent_values_allow_no_other_weights():
    weights = drawn(5).softmax(0).numpy()
    found = farthest_alternative(weights, drawn(5, 6, seed=1).numpy())
    assert found.distance == 0 and (found.weights == weights).all()


@pytest.mark.parametrize("seed", range(6))
def test_hardly_a_corner_is_farther_than_the_one_found(seed):
    """Corners by brute force: every choice of as many keys as there are conditions."""
    weights, values = drawn(7, seed=seed).softmax(0).numpy(), drawn(7, 2, seed=seed + 5).numpy()
    system = np.hstack([values, np.ones((7, 1))]).T
    farthest = 0.0
    for chosen in combinations(range(7), 3):
        part = np.linalg.solve(system[:, chosen], system @ weights)
        if (part >= 0).all():
            corner = np.zeros(7)
            corner[list(chosen)] = part
            farthest = max(farthest, np.abs(corner - weights).sum() / 2)
    found = farthest_alternative(weights, values).distance
    assert 0.98 * farthest <= found <= farthest + 1e-9
