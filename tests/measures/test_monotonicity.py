"""Monotonicity, worked by hand on three words and for sums."""

import numpy as np
import pytest
from bag_answers import BAG, given, judge


def test_monotonicity():
    # Back come −¼ (alone, p(−0.25)), then ½ (p(0.25)), then 1 (p(1.25)): both steps rise.
    assert judge("monotonicity", BAG, BAG) == 1
    # Back come 1, then ½ (rises), then −¼ (falls).
    assert judge("monotonicity", BAG, [0, 1, 2]) == 1 / 2
    # A step that changes nothing is no rise.
    assert given("monotonicity", [0.9, 0.9, 0.5], [3, 2, 1]) == 1 / 2


@pytest.mark.parametrize("seed", range(5))
def test_monotonicity_of_a_sum_sees_only_where_an_order_starts(seed):
    random = np.random.default_rng(seed)
    weights, scores = random.normal(0.5, 1, 12), random.normal(size=12)
    weights = weights if weights.sum() > 0 else -weights
    after_the_first = np.delete(weights, scores.argmin())
    assert judge("monotonicity", weights, scores) == pytest.approx((after_the_first > 0).mean())
