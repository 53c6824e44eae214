"""Ranks follow the laws that theory gives."""

import pytest
import torch

from attlas.mathematics.identifying import condition, conicity, nullities, query_ranks

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
