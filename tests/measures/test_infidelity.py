"""Infidelity against its definition, and where it would divide by nothing."""

import numpy as np
import pytest
from bag_answers import of_two_classes

from attlas.measures import MEASURES, Case
from attlas.measures.infidelity import SETS, infidelity, random_sets

COUNT = 7


def outcomes(probability):
    known = np.asarray(probability, dtype=float)
    return of_two_classes(known, np.ones(len(known), dtype=bool))


def figure(scores, lost, seed=0):
    """The figure where the model loses this much without each of the sets."""
    return infidelity(
        Case(np.array(scores, dtype=float), seed), outcomes([0.9]), outcomes(0.9 - lost)
    )


def sets(seed=0):
    return random_sets(Case(np.zeros(COUNT), seed)).astype(float)


def test_the_sets_are_of_every_size_but_none_and_all():
    for seed in range(20):
        found = sets(seed)
        assert found.shape == (SETS, COUNT)
        assert set(found.sum(1)) <= set(range(1, COUNT))
    drawn = np.concatenate([sets(seed) for seed in range(200)])
    shares = np.bincount(drawn.sum(1).astype(int), minlength=COUNT)[1:] / len(drawn)
    assert shares == pytest.approx(1 / (COUNT - 1), abs=0.02)
    assert drawn.mean(0) == pytest.approx(0.5, abs=0.02)


def test_the_sets_do_not_depend_on_the_scores():
    ways = MEASURES["infidelity"].ways
    one, other = (ways(Case(scores, 3)) for scores in (np.zeros(COUNT), np.arange(COUNT) / 2))
    assert np.array_equal(one, other)


def test_scores_that_add_up_to_what_is_lost_are_perfect_on_any_scale():
    truth = np.array([0.1, 0.05, -0.02, 0.08, 0, 0.01, -0.04])
    lost = sets() @ truth
    assert figure(truth, lost) == pytest.approx(0, abs=1e-12)
    assert figure(300 * truth, lost) == pytest.approx(0, abs=1e-12)


def test_it_is_the_smallest_mean_square_over_all_scales():
    random = np.random.default_rng(1)
    truth, scores = random.normal(0.04, 0.03, COUNT), random.normal(1, 2, COUNT)
    lost = sets() @ truth
    scales = np.linspace(0, 0.2, 200_001)[:, None]
    tried = ((scales * (sets() @ scores) - lost) ** 2).mean(1)
    assert 0 < tried.argmin() < len(tried) - 1
    assert figure(scores, lost) == pytest.approx(tried.min(), abs=1e-9)


def test_the_opposite_is_worth_as_much_as_nothing_at_all():
    truth = np.array([0.1, 0.05, -0.02, 0.08, 0, 0.01, -0.04])
    lost = sets() @ truth
    assert figure(-truth, lost) == figure(np.zeros(COUNT), lost) == pytest.approx((lost**2).mean())


def test_equal_scores_are_judged_without_dividing_by_zero():
    assert np.isfinite(figure(np.ones(COUNT), sets() @ np.full(COUNT, 0.05)))
    assert np.isnan(infidelity(Case(np.ones(1), 0), outcomes([0.9]), outcomes([])))
