"""Coalitions: weights that are the Shapley kernel's, and fits against brute force."""

from itertools import permutations

import pytest
import torch

from attlas.methods.support.coalitions import (
    all_coalitions,
    closeness,
    even_coalitions,
    ridge_scores,
    shapley_coalitions,
    shapley_values,
)


def game(players, seed=0):
    """A value for each set, told by its members' number."""
    values = torch.randn(2**players, 2, generator=torch.Generator().manual_seed(seed))
    return lambda present: values[(present.long() * 2 ** torch.arange(players)).sum(1)].double()


def by_permutations(players, play):
    """What each player adds when it comes, on average over all orders of coming."""
    orders = list(permutations(range(players)))
    total = torch.zeros(2, players).double()
    for order in orders:
        here = torch.zeros(players, dtype=torch.bool)
        for player in order:
            before = play(here[None])[0]
            here[player] = True
            total[:, player] += play(here[None])[0] - before
    return total / len(orders)


def estimate(players, count, play, seed=0):
    generator = torch.Generator().manual_seed(seed)
    present, weights = shapley_coalitions(players, count, generator)
    empty, whole = play(torch.tensor([[False], [True]]).expand(2, players))
    return shapley_values(present, weights, play(present), empty, whole)


@pytest.mark.parametrize("players", [1, 2, 3, 4, 5, 6])
def test_with_all_sets_the_fit_is_the_shapley_value(players):
    play = game(players)
    torch.testing.assert_close(estimate(players, 2**players, play), by_permutations(players, play))


def test_all_sets_are_all_different():
    sets = all_coalitions(4)
    assert sets.shape == (16, 4) and len(sets.unique(dim=0)) == 16
    assert not sets[0].any() and sets[-1].all()
    assert all_coalitions(0).shape == (1, 0)


@pytest.mark.parametrize(("players", "count"), [(2, 9), (5, 30), (12, 200), (20, 512), (30, 61)])
def test_what_is_drawn_weighs_as_the_kernel_says(players, count):
    present, weights = shapley_coalitions(players, count, torch.Generator().manual_seed(0))
    sizes = present.sum(1)
    assert len(present) <= count and sizes.min() >= 1 and sizes.max() <= players - 1
    kernel = sum((players - 1) / (size * (players - size)) for size in range(1, players))
    assert weights.sum().item() == pytest.approx(kernel)
    assert sorted(map(tuple, present.tolist())) == sorted(map(tuple, (~present).tolist()))


def test_small_sets_are_taken_whole_where_their_share_covers_them():
    present, weights = shapley_coalitions(20, 512, torch.Generator().manual_seed(0))
    sizes = present.sum(1)
    for size in (1, 19):
        assert len(present[sizes == size].unique(dim=0)) == (sizes == size).sum() == 20
        assert weights[sizes == size].tolist() == pytest.approx([1 / 20] * 20)
    assert (sizes == 2).sum() < 190
    assert len(shapley_coalitions(30, 61, torch.Generator().manual_seed(0))[0]) == 60  # all drawn


def test_estimates_add_up_and_come_near_with_more_sets():
    players, play = 11, game(11, seed=1)
    exact = estimate(players, 2**players, play)
    errors = []
    for count in (60, 500, 1500):
        found = [estimate(players, count, play, seed) for seed in range(8)]
        empty, whole = play(torch.tensor([[False], [True]]).expand(2, players))
        assert all(torch.allclose(each.sum(1), whole - empty) for each in found)
        errors.append((torch.stack(found) - exact).square().mean().sqrt())
    assert errors[0] > 2 * errors[1] > 4 * errors[2] / 2


def test_a_game_that_adds_up_is_found_from_a_few_sets():
    worth = torch.randn(2, 20, generator=torch.Generator().manual_seed(2)).double()
    found = estimate(20, 60, lambda present: present.double() @ worth.T + 3)
    torch.testing.assert_close(found, worth)


def test_players_that_no_set_tells_apart_share_evenly():
    found = shapley_values(
        torch.tensor([[True, True, False, False]]),
        torch.ones(1),
        torch.tensor([[3.0]]),
        empty=torch.tensor([0.0]),
        whole=torch.tensor([4.0]),
    )
    torch.testing.assert_close(found, torch.tensor([[1.5, 1.5, 0.5, 0.5]]).double())
    nobody = torch.zeros(0, 2, dtype=torch.bool)
    nothing = shapley_values(
        nobody, torch.zeros(0), torch.zeros(0, 1), torch.tensor([1.0]), torch.tensor([3.0])
    )
    assert nothing.tolist() == [[1, 1]]


def test_a_ridge_by_hand():
    # Two sets of one player, weighted 1 and 3: the slope is S/(S + penalty) of the difference,
    # with S = 1·(3/4)² + 3·(1/4)² = 3/4.
    found = ridge_scores(
        torch.tensor([[True], [False]]),
        torch.tensor([1.0, 3.0]),
        torch.tensor([[5.0], [1.0]]),
        0.25,
    )
    assert found.tolist() == [[pytest.approx(3.0)]]


def test_a_ridge_is_where_the_loss_is_least():
    generator = torch.Generator().manual_seed(3)
    present = even_coalitions(4, 40, generator)
    weights = torch.rand(40, generator=generator).double()
    values = torch.randn(40, 1, generator=generator)
    slopes = ridge_scores(present, weights, values, 0.7).requires_grad_()
    offset = (values.double() - present.double() @ slopes.T)[:, 0] * weights
    offset = (offset.sum() / weights.sum()).detach().requires_grad_()
    rest = (values.double() - offset - present.double() @ slopes.T)[:, 0]
    loss = (weights * rest**2).sum() + 0.7 * (slopes**2).sum()
    for gradient in torch.autograd.grad(loss, [slopes, offset]):
        assert gradient.abs().max() < 1e-9


def test_closeness_by_hand():
    present = torch.tensor([[True] * 4, [True, False, False, False], [False] * 4])
    found = closeness(present, width=0.5)
    expected = torch.tensor([0.0, 0.25, 1.0]).double().mul(-2).exp()  # −d²/2w², d = 0, ½, 1
    torch.testing.assert_close(found, expected)


def test_even_sets_hold_half_and_begin_with_the_whole():
    drawn = even_coalitions(10, 4000, torch.Generator().manual_seed(0))
    assert drawn[0].all()
    assert (drawn[1:].double().mean(0) - 0.5).abs().max() < 0.04
