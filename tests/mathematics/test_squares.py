"""Maps of a later stage, spread over the patches."""

import torch

from attlas.mathematics.squares import (
    NOBODY,
    spread_attention,
    spread_effects,
    spread_gradient,
    spread_marks,
    spread_rows,
    spread_states,
    squares_of,
)

HOLDERS = torch.tensor([NOBODY, 0, 0, 1, 1, 1])  # the first token is not there


def draw(*shape):
    return torch.rand(*shape, generator=torch.Generator().manual_seed(0))


def test_squares_are_counted_row_by_row_and_cut_off_at_the_edge():
    assert squares_of((3, 4), 4).tolist() == [0, 0, 1, 1, 0, 0, 1, 1, 2, 2, 3, 3]
    assert squares_of((3, 4), 12).tolist() == list(range(12))
    assert squares_of((3, 4), 1).tolist() == [0] * 12
    assert squares_of((3, 4), 5) is None
    assert squares_of((3, 4), 0) is None


def test_spread_attention_shares_a_square_and_keeps_the_sums_and_what_is_mixed():
    weights = draw(1, 1, 2, 2).softmax(dim=-1)
    spread = spread_attention(weights, HOLDERS, HOLDERS)
    a, b = weights[0, 0, 0].tolist()
    torch.testing.assert_close(
        spread[0, 0, 1], torch.tensor([0, a / 2, a / 2, b / 3, b / 3, b / 3])
    )
    assert torch.equal(spread[0, 0, 1], spread[0, 0, 2])
    assert spread[0, 0, 0].tolist() == [1, 0, 0, 0, 0, 0]
    torch.testing.assert_close(spread.sum(dim=-1), torch.ones(1, 1, 6))
    values = draw(1, 1, 2, 5)
    mixed = spread @ spread_states(values, HOLDERS)
    torch.testing.assert_close(mixed[:, :, 1:], (weights @ values)[:, :, HOLDERS[1:]])


def test_following_spread_maps_is_following_the_stages_with_equal_shares():
    below, above = (draw(1, 1, size, size).softmax(dim=-1) for size in (5, 2))
    merging = torch.tensor([[1 / 2, 1 / 2, 0, 0, 0], [0, 0, 1 / 3, 1 / 3, 1 / 3]])
    expected = torch.tensor([0.3, 0.7]) @ (torch.eye(2) + above[0, 0]) @ merging @ below[0, 0]
    square = HOLDERS[1:]
    spread = torch.eye(5) + spread_attention(above, square, square)[0, 0]
    readout = spread_rows(torch.tensor([[0.3, 0.7]]), square)[0]
    torch.testing.assert_close(readout @ spread @ below[0, 0], expected)


def test_the_gradient_is_that_on_the_spread_map():
    own = draw(1, 1, 2, 2)
    spread = spread_attention(own, HOLDERS, HOLDERS).requires_grad_()
    there = spread[:, :, 1:, 1:]
    rows = torch.stack([there[:, :, :2].mean(dim=2), there[:, :, 2:].mean(dim=2)], dim=2)
    used = torch.stack([rows[..., :2].sum(dim=-1), rows[..., 2:].sum(dim=-1)], dim=-1)
    torch.testing.assert_close(used, own)
    slope = draw(1, 1, 2, 2)
    (expected,) = torch.autograd.grad((used * slope).sum(), spread)
    torch.testing.assert_close(spread_gradient(slope, HOLDERS, HOLDERS), expected)


def test_effects_keep_their_sum_and_marks_what_is_seen():
    effects = draw(1, 2, 2, 2)
    spread = spread_effects(effects, HOLDERS, HOLDERS)
    torch.testing.assert_close(spread.sum(dim=(2, 3)), effects.sum(dim=(2, 3)))
    marks = spread_marks(torch.tensor([[[[True, False], [True, True]]]]), HOLDERS, HOLDERS)
    assert marks[0, 0, 1].tolist() == [False, True, True, False, False, False]
    assert not marks[0, 0, 0].any()


def test_rows_share_their_weight():
    shared = spread_rows(torch.tensor([[0.4, 0.6]]), HOLDERS)
    torch.testing.assert_close(shared, torch.tensor([[0, 0.2, 0.2, 0.2, 0.2, 0.2]]))
