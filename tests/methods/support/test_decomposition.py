"""Parts of hidden states: how biases are shared out, and how parts are weighed."""

import pytest
import torch

from attlas.methods.support.decomposition import (
    aligned,
    closeness,
    multiplied_to_scale,
    multiplied_up,
    part_lengths,
    present,
    slope,
)

PARTS = torch.tensor([[3.0, 0.0], [0.0, -1.0], [0.0, 0.0]])  # three tokens, one row


def test_a_bias_goes_to_those_that_point_along_it_or_against():
    shares = aligned(PARTS, torch.tensor([1.0, 1.0]))
    torch.testing.assert_close(shares, torch.tensor([[0.75], [0.25], [0.0]]))
    shares = aligned(PARTS, torch.tensor([0.0, 5.0]))
    torch.testing.assert_close(shares, torch.tensor([[0.0], [1.0], [0.0]]))


def test_a_bias_that_no_part_points_along_goes_to_those_present():
    square = torch.tensor([[1.0, 0.0], [-2.0, 0.0], [0.0, 0.0]])
    shares = aligned(square, torch.tensor([0.0, 1.0]))
    torch.testing.assert_close(shares, torch.tensor([[0.5], [0.5], [0.0]]))
    assert torch.equal(present(square, torch.ones(2)), shares)
    assert not present(torch.zeros(3, 2), torch.ones(2)).any()


def test_rows_have_shares_of_their_own():
    parts = torch.stack([PARTS, PARTS.flip(0)], dim=1)
    bias = torch.tensor([[1.0, 1.0], [1.0, 0.0]])
    found = aligned(parts, bias)
    torch.testing.assert_close(found[:, 0, 0], torch.tensor([0.75, 0.25, 0.0]))
    torch.testing.assert_close(found[:, 1, 0], torch.tensor([0.0, 0.0, 1.0]))


@pytest.mark.parametrize("activation", [torch.tanh, torch.relu, torch.nn.functional.gelu])
def test_the_slope_leads_from_the_origin_to_what_came_out(activation):
    given = torch.tensor([-2.0, -0.5, 0.0, 1e-20, 3.0])
    found = slope(given, activation(given))
    torch.testing.assert_close(found * given, activation(given))
    assert torch.isfinite(found).all()


def test_lengths_by_query_and_token():
    parts = torch.tensor([[[[3.0, 4.0], [0.0, 0.0]]], [[[0.0, 2.0], [1.0, 0.0]]]])
    expected = torch.tensor([[[5.0, 2.0], [0.0, 1.0]]])
    torch.testing.assert_close(part_lengths(parts), expected)


def test_closeness_by_hand():
    whole = torch.tensor([[[2.0, -2.0]]])
    parts = torch.tensor([[[[2.0, -1.0]]], [[[0.0, -1.0]]], [[[0.0, 5.0]]]])
    # |y| = 4; distances 1, 3 and 9: nearer by 3, by 1, and not at all.
    torch.testing.assert_close(closeness(whole, parts), torch.tensor([[[0.75, 0.25, 0.0]]]))


def test_where_no_part_is_nearer_than_nothing_all_are_zero():
    whole = torch.zeros(1, 1, 2)
    assert not closeness(whole, torch.ones(3, 1, 1, 2)).any()


def test_layers_are_multiplied_from_the_top():
    low, high = torch.rand(1, 3, 3), torch.rand(1, 3, 3)
    torch.testing.assert_close(multiplied_up([low, high]), high @ low)


def test_many_layers_do_not_overflow():
    layers = [1e6 * torch.rand(2, 3, 3, generator=torch.Generator().manual_seed(n)) for n in (1, 2)]
    product = layers[1] @ layers[0]
    expected = product / product.amax(dim=(1, 2), keepdim=True)
    torch.testing.assert_close(multiplied_to_scale(layers), expected)
    assert torch.isfinite(multiplied_to_scale(layers * 40)).all()
    assert not torch.isfinite(multiplied_up(layers * 40)).all()
    assert not multiplied_to_scale([torch.zeros(1, 3, 3)]).any()
