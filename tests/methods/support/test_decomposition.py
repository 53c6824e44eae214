"""Parts of hidden states: how biases are shared out, and how parts are weighed."""

from fractions import Fraction

import pytest
import torch

from attlas.methods.support.decomposition import (
    aligned_shares,
    closeness,
    closeness_shares,
    equal_shares,
    product_of_layers,
    read_scaled_rows,
    scaled_product_of_layers,
    slope,
    term_lengths,
)

PARTS = torch.tensor([[3.0, 0.0], [0.0, -1.0], [0.0, 0.0]])  # three tokens, one row


def test_a_bias_goes_to_those_that_point_along_it_or_against():
    shares = aligned_shares(PARTS, torch.tensor([1.0, 1.0]))
    torch.testing.assert_close(shares, torch.tensor([[0.75], [0.25], [0.0]]))
    shares = aligned_shares(PARTS, torch.tensor([0.0, 5.0]))
    torch.testing.assert_close(shares, torch.tensor([[0.0], [1.0], [0.0]]))


def test_a_bias_that_no_part_points_along_goes_to_those_present():
    square = torch.tensor([[1.0, 0.0], [-2.0, 0.0], [0.0, 0.0]])
    shares = aligned_shares(square, torch.tensor([0.0, 1.0]))
    torch.testing.assert_close(shares, torch.tensor([[0.5], [0.5], [0.0]]))
    assert torch.equal(equal_shares(square, torch.ones(2)), shares)
    assert not equal_shares(torch.zeros(3, 2), torch.ones(2)).any()


def test_rows_have_shares_of_their_own():
    parts = torch.stack([PARTS, PARTS.flip(0)], dim=1)
    bias = torch.tensor([[1.0, 1.0], [1.0, 0.0]])
    found = aligned_shares(parts, bias)
    torch.testing.assert_close(found[:, 0, 0], torch.tensor([0.75, 0.25, 0.0]))
    torch.testing.assert_close(found[:, 1, 0], torch.tensor([0.0, 0.0, 1.0]))


@pytest.mark.parametrize("activation", [torch.tanh, torch.relu, torch.nn.functional.gelu])
def test_the_slope_leads_from_the_origin_to_what_came_out(activation):
    given = torch.tensor([-2.0, -0.5, 0.0, 1e-20, 3.0])
    found = slope(given, activation(given))
    torch.testing.assert_close(found * given, activation(given))
    assert torch.isfinite(found).all()


def test_lengths_by_token_and_query():
    parts = torch.tensor([[[[3.0, 4.0], [0.0, 0.0]]], [[[0.0, 2.0], [1.0, 0.0]]]])
    expected = torch.tensor([[[5.0, 0.0]], [[2.0, 1.0]]])
    torch.testing.assert_close(term_lengths(parts), expected)


def test_closeness_by_hand():
    whole = torch.tensor([[[2.0, -2.0]]])
    parts = torch.tensor([[[[2.0, -1.0]]], [[[0.0, -1.0]]], [[[0.0, 5.0]]]])
    # |y| = 4; distances 1, 3 and 9: nearer by 3, by 1, and not at all.
    near = closeness(whole, parts)
    torch.testing.assert_close(near, torch.tensor([[[3.0]], [[1.0]], [[0.0]]]))
    shares = closeness_shares(near.permute(1, 2, 0))
    torch.testing.assert_close(shares, torch.tensor([[[0.75, 0.25, 0.0]]]))


def test_where_no_part_is_nearer_than_nothing_all_are_zero():
    whole = torch.zeros(1, 1, 2)
    near = closeness(whole, torch.ones(3, 1, 1, 2))
    assert not closeness_shares(near.permute(1, 2, 0)).any()


def test_layers_are_multiplied_from_the_top():
    low, high = torch.rand(1, 3, 3), torch.rand(1, 3, 3)
    torch.testing.assert_close(product_of_layers([low, high]), high @ low)


def test_many_layers_do_not_overflow():
    layers = [1e6 * torch.rand(2, 3, 3, generator=torch.Generator().manual_seed(n)) for n in (1, 2)]
    product = layers[1] @ layers[0]
    largest = product.amax(dim=2, keepdim=True)
    mixing, scale = scaled_product_of_layers(layers)
    torch.testing.assert_close(mixing.float(), product / largest)
    torch.testing.assert_close(scale.float(), largest.log()[..., 0])
    assert torch.isfinite(scaled_product_of_layers(layers * 40)[0]).all()
    assert not torch.isfinite(product_of_layers(layers * 40)).all()
    nothing, scale = scaled_product_of_layers([torch.zeros(1, 3, 3)] * 2)
    assert not nothing.any() and not read_scaled_rows(nothing, scale, torch.ones(1, 3) / 3).any()


def test_rows_that_grow_differently_do_not_underflow():
    """The first row grows by 1e4 a layer, as a sink does in a decoder, and the last by 1/4."""
    layer = [[10**4, 0, 0], [0, Fraction(1, 2), 0], [0, Fraction(1, 8), Fraction(1, 4)]]
    row = [Fraction(0), Fraction(0), Fraction(1)]
    for _ in range(100):  # float64 alone would hold what 30 layers make
        row = [sum(row[k] * layer[k][j] for k in range(3)) for j in range(3)]
    layers = [torch.tensor([[[float(each) for each in row] for row in layer]])] * 100
    scores = read_scaled_rows(*scaled_product_of_layers(layers), torch.tensor([[0.0, 0.0, 1.0]]))
    expected = torch.tensor([[float(each / max(row)) for each in row]])
    torch.testing.assert_close(scores.float(), expected, rtol=1e-6, atol=0)


def test_several_rows_count_in_their_own_size():
    layers = [torch.rand(1, 3, 3, generator=torch.Generator().manual_seed(n)) for n in (1, 2)]
    readout = torch.tensor([[0.0, 0.25, 0.75], [1.0, 0.0, 0.0]])  # of two targets
    read = readout @ (layers[1] @ layers[0])[0]
    scores = read_scaled_rows(*scaled_product_of_layers(layers), readout)
    torch.testing.assert_close(scores.float(), read / read.amax(dim=1, keepdim=True))
