"""Other weights with the same output: they are valid, and hardly any are farther away."""

from itertools import combinations

import numpy as np
import pytest
import torch

from attlas.trials.searching.other_attention import farthest_alternative


def drawn(*shape, seed=0):
    generator = torch.Generator().manual_seed(seed)
    return torch.randn(*shape, generator=generator, dtype=torch.float64)


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
def test_no_corner_is_much_farther_than_the_one_found(seed):
    """Corners by brute force: every choice of as many keys as there are conditions."""
    weights, values = drawn(7, seed=seed).softmax(0).numpy(), drawn(7, 2, seed=seed + 5).numpy()
    system = np.hstack([values, np.ones((7, 1))]).T
    farthest = 0.0
    for chosen in combinations(range(7), 3):
        solved = np.linalg.solve(system[:, chosen], system @ weights)
        if (solved >= 0).all():
            corner = np.zeros(7)
            corner[list(chosen)] = solved
            farthest = max(farthest, np.abs(corner - weights).sum() / 2)
    found = farthest_alternative(weights, values).distance
    assert 0.98 * farthest <= found <= farthest + 1e-9
