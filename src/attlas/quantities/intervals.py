"""How sure a mean over inputs is."""

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np

from attlas.errors import UsageError

LEVEL = 0.95
DRAWS = 2000


@dataclass(frozen=True)
class Estimate:
    """A mean, the interval it lies in, and the number of inputs it comes from."""

    mean: float
    low: float
    high: float
    inputs: int


def bootstrap_mean(values: Sequence[Sequence[float]], seed: int = 0) -> Estimate:
    """The mean of all values, with a 95 % percentile interval from drawing inputs anew.

    `values` holds those of each input: what comes from one input stays together. Where all values
    are the same the interval has no width, which is not to say that another input could not differ.
    """
    if not values or not all(map(len, values)):
        raise UsageError("an interval needs at least one input, and a value from each")
    sums = np.array([sum(each) for each in values], dtype=np.float64)
    counts = np.array([len(each) for each in values])
    drawn = np.random.default_rng(seed).integers(len(values), size=(DRAWS, len(values)))
    means = sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1)
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Estimate(float(sums.sum() / counts.sum()), float(low), float(high), len(values))
