"""How far vectors are from a sample of vectors, in units of the sample's own spread."""

import numpy as np
from numpy.typing import NDArray

from attlas.errors import UsageError
from attlas.shapes import SomeTextValues, StateTable

LEAST_SPREAD = 1e-3  # of the size of the vectors; a smaller spread is rounding
SAME = (
    0.02  # distances that differ by less are the same; those of the sample's own kind are about 1
)


def distances(sample: StateTable, others: StateTable) -> SomeTextValues:
    """Mahalanobis' distance of each other vector to the mean of a sample, by a shrunk covariance.

    The covariance is shrunk towards a multiple of the identity by as much as Ledoit and Wolf (2004)
    found to be best, so there may be fewer vectors than features. The distance is divided by the
    root of the number of features: for vectors of the sample's own kind it is about 1.
    """
    count, features = sample.shape
    if count < 2:
        raise UsageError(f"a spread needs at least two vectors, not {count}")
    mean = sample.mean(axis=0)
    values, rows = np.linalg.eigh((sample - mean) @ (sample - mean).T / count)
    values = values.clip(0)
    share, level = _shrinkage(sample - mean, values)
    least = LEAST_SPREAD**2 * float((sample**2).sum()) / sample.size
    # Each direction of the sample that has a variance, and all others together.
    own = values > 1e-12 * max(float(values.max()), np.finfo(float).tiny)
    axes = (sample - mean).T @ (rows[:, own] / np.sqrt(count * values[own]))
    parts = (others - mean) @ axes
    rest = (((others - mean) ** 2).sum(axis=1) - (parts**2).sum(axis=1)).clip(0)
    spread = np.maximum((1 - share) * values[own] + share * level, least)
    squares = (parts**2 / spread).sum(axis=1) + _divided(rest, max(share * level, least))
    found: SomeTextValues = np.sqrt(squares / features)
    return found


def _shrinkage(centred: NDArray[np.float64], values: NDArray[np.float64]) -> tuple[float, float]:
    """The share of the identity in the best covariance, and its multiple: the mean variance."""
    count, features = centred.shape
    level = float(values.sum()) / features
    squared = float((values**2).sum())
    apart = squared - features * level**2  # of the covariance from the multiple of the identity
    noise = (float(((centred**2).sum(axis=1) ** 2).sum()) / count - squared) / count
    return (min(1.0, noise / apart) if apart > 0 else 1.0), level


def _divided(squares: NDArray[np.float64], spread: float) -> NDArray[np.float64]:
    """What is outside of the sample's directions; only vectors of zeros have no spread at all."""
    unknown = np.where(squares > 0, np.inf, 0.0)
    return squares / spread if spread > 0 else unknown


def strangeness(found: SomeTextValues, usual: SomeTextValues) -> SomeTextValues:
    """How far distances are from a usual one, the median, above or below, as a log ratio.

    Few vectors of many features are near the mean of their kind: one that is there is strange too.
    """
    middle = float(np.median(usual))
    far: SomeTextValues = np.abs(np.log((found + SAME) / (middle + SAME)))
    return far


def share_above(one: NDArray[np.float64], other: NDArray[np.float64]) -> float:
    """The share of pairs in which the first is larger; equal ones count half."""
    tied = np.isclose(one, other, rtol=0, atol=SAME)
    return float(np.where(tied, 0.5, one > other).mean())
