"""Distances to a sample of vectors, and how strange they are for vectors of its kind."""

import numpy as np
import pytest

from attlas.errors import UsageError
from attlas.mathematics.distances import distances, share_above, strangeness


def by_definition(sample, others):
    """Mahalanobis' distances by the covariance of Ledoit and Wolf, from whole matrices."""
    count, features = sample.shape
    centred = sample - sample.mean(axis=0)
    covariance = sum(np.outer(each, each) for each in centred) / count
    target = np.trace(covariance) / features * np.eye(features)
    noise = sum(((np.outer(each, each) - covariance) ** 2).sum() for each in centred) / count**2
    share = min(1.0, noise / ((covariance - target) ** 2).sum())
    inverse = np.linalg.inv((1 - share) * covariance + share * target)
    moved = others - sample.mean(axis=0)
    return np.sqrt(np.einsum("nf,fg,ng->n", moved, inverse, moved) / features)


@pytest.mark.parametrize(("count", "features"), [(50, 4), (6, 20), (4, 3)])
def test_distances_follow_their_definition(count, features):
    random = np.random.default_rng(count)
    scales = np.linspace(0.2, 3.0, features)
    sample = random.normal(1.0, scales, (count, features))
    others = random.normal(0.0, 2.0, (7, features))
    np.testing.assert_allclose(distances(sample, others), by_definition(sample, others))


def test_vectors_of_the_same_kind_are_about_one_away():
    random = np.random.default_rng(0)
    sample, others = random.normal(0, [1, 5, 9], (2, 300, 3))
    assert np.sqrt((distances(sample, others) ** 2).mean()) == pytest.approx(1, abs=0.1)


def index(sample, one, other):
    usual = distances(sample, sample)
    return share_above(*(strangeness(distances(sample, each), usual) for each in (one, other)))


def test_the_same_kind_is_a_half_and_another_is_one():
    random = np.random.default_rng(1)
    sample, one, other = random.normal(0, 1, (3, 400, 30))
    assert index(sample, one, other) == pytest.approx(0.5, abs=0.05)
    assert index(sample, one + 9, other) == 1
    assert index(sample, other, one + 9) == 0


def test_vectors_that_collapse_into_the_middle_are_strange():
    random = np.random.default_rng(2)
    sample, one, other = random.normal(0, 1, (3, 200, 30))
    assert distances(sample, one / 9).max() < distances(sample, other).min()
    assert index(sample, one / 9, other) == 1


def test_what_differs_by_rounding_alone_is_a_tie():
    random = np.random.default_rng(3)
    same = np.full((20, 6), 0.7)
    noise = random.normal(0, 1e-7, (2, 20, 6))
    assert index(same, same + noise[0], same + noise[1]) == 0.5
    assert index(same * 0, same * 0, same * 0) == 0.5
    assert share_above(np.array([1.0, 2.0, 2.0]), np.ones(3)) == pytest.approx(2.5 / 3)


def test_one_vector_has_no_spread():
    with pytest.raises(UsageError, match="at least two vectors, not 1"):
        distances(np.ones((1, 3)), np.ones((2, 3)))
