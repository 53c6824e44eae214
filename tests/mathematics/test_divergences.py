"""Divergences: against scipy, by hand, and the mistakes that were published."""

import math

import numpy as np
import pytest
import torch
from scipy.spatial.distance import jensenshannon
from scipy.special import softmax
from scipy.stats import entropy as scipy_entropy

from attlas.mathematics.divergences import (
    entropy,
    jensen_shannon,
    kullback_leibler,
    largest_jensen_shannon,
    total_variation,
)


def pairs(seed, rows=50, choices=7):
    random = np.random.default_rng(seed)
    p, q = random.dirichlet(np.full(choices, 0.3), size=(2, rows))
    p[0], q[0] = np.eye(choices)[0], np.eye(choices)[1]  # nothing in common
    p[1, :3] = 0  # some have no probability
    p[1] /= p[1].sum()
    return torch.from_numpy(p), torch.from_numpy(q)


def test_they_are_scipys_to_the_last_digits():
    p, q = pairs(0)
    for row, (a, b) in enumerate(zip(p.numpy(), q.numpy(), strict=True)):
        assert entropy(p)[row] == pytest.approx(scipy_entropy(a), abs=1e-12)
        assert jensen_shannon(p, q)[row] == pytest.approx(jensenshannon(a, b) ** 2, abs=1e-12)
        if row:
            assert kullback_leibler(p, q)[row] == pytest.approx(scipy_entropy(a, b), rel=1e-12)
        assert total_variation(p, q)[row] == pytest.approx(max_over_sets(a, b), abs=1e-12)


def max_over_sets(a, b):
    """Total variation as it is defined: the largest difference on any set."""
    sets = (np.arange(2 ** len(a))[:, None] >> np.arange(len(a))) % 2
    return np.abs(sets @ (a - b)).max()


def test_what_has_nothing_in_common():
    p, q = torch.tensor([1.0, 0.0]).double(), torch.tensor([0.0, 1.0]).double()
    assert jensen_shannon(p, q).item() == pytest.approx(math.log(2), abs=1e-15)
    assert total_variation(p, q).item() == 1
    assert kullback_leibler(p, q).item() == math.inf
    for same in (jensen_shannon, total_variation, kullback_leibler):
        assert same(p, p).item() == 0
    assert entropy(p).item() == 0


@pytest.mark.parametrize(("a", "b"), [(0.9, 0.2), (0.5, 0.51), (0.0, 1.0)])
def test_total_variation_of_two_classes_is_not_halved(a, b):
    p, q = torch.tensor([a, 1 - a]), torch.tensor([b, 1 - b])
    assert total_variation(p, q).item() == pytest.approx(abs(a - b), abs=1e-6)


def test_what_is_given_is_not_put_through_a_softmax_again():
    p, q = pairs(1)
    twice = [torch.from_numpy(softmax(each.numpy(), axis=1)) for each in (p, q)]
    for divergence in (jensen_shannon, total_variation, kullback_leibler):
        assert (divergence(*twice) < divergence(p, q) / 2).double().mean() > 0.9
    # By hand: |0.9 − 0.5| and no less.
    assert total_variation(torch.tensor([0.9, 0.1]), torch.tensor([0.5, 0.5])) == pytest.approx(0.4)


def test_divergence_has_a_direction_and_the_jensen_shannon_has_none():
    p, q = torch.tensor([[0.9, 0.1], [0.5, 0.5]], dtype=torch.float64)
    forth = 0.9 * math.log(1.8) + 0.1 * math.log(0.2)
    back = 0.5 * math.log(0.5 / 0.9) + 0.5 * math.log(5)
    assert kullback_leibler(p, q).item() == pytest.approx(forth, abs=1e-15)
    assert kullback_leibler(q, p).item() == pytest.approx(back, abs=1e-15)
    assert jensen_shannon(p, q) == jensen_shannon(q, p)


@pytest.mark.parametrize(("tokens", "expected"), [(5, 0.42), (10, 0.53), (20, 0.59)])
def test_the_most_that_uniform_attention_can_be_changed(tokens, expected):
    uniform = torch.full((tokens,), 1 / tokens).double()
    assert largest_jensen_shannon(uniform).item() == pytest.approx(expected, abs=0.005)


def test_nothing_is_further_than_the_largest():
    random = np.random.default_rng(2)
    p = torch.from_numpy(random.dirichlet(np.ones(4), size=20))
    others = torch.from_numpy(np.concatenate([random.dirichlet(np.full(4, 0.1), 3000), np.eye(4)]))
    furthest = jensen_shannon(p[:, None], others[None]).max(dim=1).values
    assert torch.allclose(furthest, largest_jensen_shannon(p), rtol=0, atol=1e-12)


def test_gradients_are_those_of_the_formula_and_stay_finite_where_both_are_zero():
    logits = torch.tensor([0.3, -0.2, 1.0]).double().requires_grad_()
    q = torch.tensor([0.2, 0.3, 0.5]).double()
    for divergence in (jensen_shannon, kullback_leibler, total_variation):
        torch.autograd.gradcheck(lambda x, d=divergence: d(x.softmax(-1), q), logits)
    p = torch.tensor([0.6, 0.4, 0.0]).double().requires_grad_()
    jensen_shannon(p, torch.tensor([0.5, 0.5, 0.0]).double()).backward()
    mixture = torch.tensor([0.55, 0.45]).double()
    expected = (torch.tensor([0.6, 0.4]).double() / mixture).log() / 2
    assert torch.allclose(p.grad[:2], expected, atol=1e-12)
    assert p.grad[2] == 0
