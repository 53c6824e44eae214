"""Adversarial keys: how far and which way they move, and the gradient with the way held."""

import pytest
import torch
from learners import FAMILIES, InDouble, classifier, step_of
from objectives.test_contract import along_a_direction

from attlas.errors import UsageError
from attlas.objectives import adversarial_keys as module
from attlas.objectives.adversarial_keys import adversarial_keys, find_moves, move_along


def test_keys_move_by_their_share():
    keys, slope = torch.randn(2, 3, 5, 4), torch.randn(2, 3, 5, 4)
    moved = move_along(keys, slope, 0.1)
    for row in range(2):
        assert moved[row].norm().item() == pytest.approx(0.1 * keys[row].norm().item(), rel=1e-5)
        assert torch.cosine_similarity(moved[row].flatten(), slope[row].flatten(), dim=0) > 0.999
    assert not move_along(keys, torch.zeros_like(slope), 0.1).any()


def test_the_loss_rises_above_that_of_a_random_move():
    model = classifier(dropout=0.0).eval()
    plain = step_of(model).losses()
    worst = adversarial_keys(step_of(model), reach=0.05)
    assert worst.mean() > plain.mean()
    step = step_of(model)
    ways = find_moves(step, "all", 0.05)
    random = torch.Generator().manual_seed(0)
    noise = {
        name: move_along(way, torch.randn(way.shape, generator=random), 1.0)
        for name, way in ways.items()
    }
    other = step.losses(change=lambda site, keys: keys + noise[site.name])
    assert worst.mean() > other.mean()


def test_parameters_get_no_gradient_of_the_way():
    model = classifier(dropout=0.0)
    ways = find_moves(step_of(model), "all", 0.1)
    assert all(not way.requires_grad for way in ways.values())
    assert all(each.grad is None for each in model.parameters())


@pytest.mark.parametrize("family", FAMILIES)
def test_its_gradient_is_that_of_finite_differences_with_the_way_held(family, monkeypatch):
    model = classifier(family, dropout=0.0).double()
    with InDouble():
        held = find_moves(step_of(model), "all", 0.1)
        monkeypatch.setattr(module, "find_moves", lambda *_: held)
        slope, expected = along_a_direction(model, lambda: adversarial_keys(step_of(model)).sum())
    assert slope == pytest.approx(expected, rel=1e-6, abs=1e-9) and abs(slope) > 1e-6


def test_no_way_at_all_is_refused():
    with pytest.raises(UsageError, match="reach of adversarial_keys"):
        adversarial_keys(step_of(classifier()), reach=0.0)
