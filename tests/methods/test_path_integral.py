"""The integral along a path: closed forms, steep places, and what it says where it does not end."""

import numpy as np
import pytest

from attlas.methods.integrated_gradients import PathIntegral


def run(value, slopes, tolerance=0.01, most=600):
    path = PathIntegral()
    places = path.start()
    while places:
        for place in places:
            path.add(place, float(value(place)), slopes(place))
        places = path.refine(tolerance, most)
    return path


def test_each_input_gets_what_it_adds():
    """Of sin(2t) + (3t)³ with t from 0 to 1, one input adds sin 2 and the other 27."""
    found = run(
        lambda t: np.sin(2 * t) + (3 * t) ** 3,
        lambda t: np.array([2 * np.cos(2 * t), 81 * t**2]),
        1e-6,
    )
    np.testing.assert_allclose(found.integral(), [np.sin(2), 27], atol=3e-5)
    assert found.gain == pytest.approx(np.sin(2) + 27)
    assert found.is_within(1e-6)


@pytest.mark.parametrize("place", [0.3, 0.7012])
def test_a_step_that_even_points_miss(place):
    """Two inputs rise by a step and one of them falls again at another: 2, and 0."""

    def value(t):
        return np.tanh(1e4 * (t - place)) + 3 * t

    def slopes(t):
        return np.array([1e4 / np.cosh(np.clip(1e4 * (t - place), -300, 300)) ** 2, 3.0])

    even = np.mean([slopes((step + 0.5) / 400).sum() for step in range(400)])
    assert abs(even - 5) > 0.3
    found = run(value, slopes)
    np.testing.assert_allclose(found.integral(), [2, 3], rtol=0.02)
    assert len(found.values) < 150


def test_a_slope_without_a_value_at_the_start():
    def slopes(t):
        return np.array([np.inf if t == 0 else 0.5 / np.sqrt(t)])

    found = run(np.sqrt, slopes, 0.01)
    np.testing.assert_allclose(found.integral(), [1], rtol=0.01)


def test_what_goes_up_and_down_again_is_seen_too():
    """No gain in all, but one input's 1 against the other's -1, both at one place."""

    def bump(t):
        return 40 * np.exp(-(((t - 0.6) / 0.02) ** 2))

    def slope(t):
        return bump(t) * -2 * (t - 0.6) / 0.02**2

    found = run(bump, lambda t: np.array([slope(t) + 1, -1.0]))
    np.testing.assert_allclose(found.integral(), [1, -1], atol=0.05)
    assert len(found.values) > 20


def test_the_limit_is_kept_and_told():
    def wild(t):
        return np.sin(1e5 * t)

    found = run(wild, lambda t: np.array([1e5 * np.cos(1e5 * t)]), most=33)
    assert len(found.values) <= 33
    assert not found.is_within(0.01)


def test_values_that_are_not_finite_end_it():
    found = run(lambda t: np.nan if t == 0.5 else t, lambda t: np.array([1.0, 0.0]))
    assert np.isnan(found.integral()).all()
    assert not found.is_within(0.01)
