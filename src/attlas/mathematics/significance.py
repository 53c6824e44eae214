"""Tests whether scores do better than uninformed ones, on one text and over a data set."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from attlas.errors import UnknownNameError, UsageError
from attlas.mathematics.grouping import summed_by_group
from attlas.shapes import MethodValues, MethodVector, TextGroups, TextValues

DRAWS = 9999
CHUNK = 1000  # draws that are in memory at once
BETTER = ("higher", "lower")


def per_text_p(value: float, controls: TextValues, better: str, random: Generator) -> float:
    """The p-value of a value among B controls: (b + U) / (B + 1), with ties broken at random.

    It is uniform between 0 and 1 if the value is drawn like its controls, however often they tie.
    NaN controls are left out; the p-value of a NaN value is NaN.
    """
    if better not in BETTER:
        raise UnknownNameError("direction", better, BETTER)
    known = controls[~np.isnan(controls)]
    if np.isnan(value) or not len(known):
        return float("nan")
    ahead = (known > value if better == "higher" else known < value).sum()
    tied = (known == value).sum()
    return float((ahead + random.uniform() * (1 + tied)) / (len(known) + 1))


@dataclass(frozen=True, eq=False)
class SignFlips:
    """For each method: its p-value, and the p-value adjusted for testing several methods."""

    p: MethodVector
    adjusted: MethodVector


def sign_flip(
    differences: MethodValues,
    seed: int = 0,
    groups: TextGroups | None = None,
    draws: int = DRAWS,
) -> SignFlips:
    """Test, one-sided, whether each method's differences lie above zero.

    Under the null hypothesis, flipping all signs of a text's differences is equally likely. The
    statistic is the mean in units of its error; the adjustment is the step-down of Westfall and
    Young on its maximum. If there are at most `draws` combinations of signs, all are used. NaN
    values are left out; texts of one group flip together. With fewer than 20 texts whose
    differences are very skewed, adjusted values are too small up to twice as often as they state.
    """
    if draws < 1:
        raise UsageError(f"draws must be at least 1, not {draws}")
    missing = np.isnan(differences).all(axis=0)
    values = summed_by_group(np.nan_to_num(differences), groups)
    norms = np.sqrt((values**2).sum(axis=0))
    values = values / np.where(norms > 0, norms, 1)
    observed = values.sum(axis=0)
    downwards = np.argsort(-observed, kind="stable")
    alone, together = np.zeros(len(observed)), np.zeros(len(observed))
    signs = _signs(len(values), draws, seed)
    total = len(signs)
    for start in range(0, total, CHUNK):
        # Sums of the same numbers in another order differ in their last bits.
        turned = signs[start : start + CHUNK].astype(np.float64) @ values + 1e-12
        alone += (turned >= observed).sum(axis=0)
        # For each method, the maximum over it and all methods below it.
        most = np.maximum.accumulate(turned[:, downwards[::-1]], axis=1)[:, ::-1]
        together += (most >= observed[downwards]).sum(axis=0)
    adjusted = np.empty(len(observed))
    adjusted[downwards] = np.maximum.accumulate(together / total)
    return SignFlips(*(np.where(missing, np.nan, each) for each in (alone / total, adjusted)))


@lru_cache(maxsize=2)  # a report flips the signs of the same texts for each of its figures
def _signs(count: int, draws: int, seed: int) -> NDArray[np.int8]:
    """All combinations of signs, or random ones; the first has no sign flipped."""
    if 2**count <= draws:
        ways = np.arange(2**count)[:, None] >> np.arange(count)
        return (1 - 2 * (ways % 2)).astype(np.int8)
    signs = np.zeros((draws + 1, count), dtype=np.int8)
    signs[1:] = np.random.default_rng(seed).integers(2, size=(draws, count), dtype=np.int8)
    signs *= -2  # in place: there may be many texts
    signs += 1
    return signs


def holm(p: MethodVector) -> MethodVector:
    """p-values adjusted by Holm's step-down procedure; NaN stays NaN."""
    adjusted = np.full(len(p), np.nan)
    upwards = np.argsort(p, kind="stable")
    upwards = upwards[~np.isnan(p[upwards])]
    left = np.arange(len(upwards), 0, -1)
    adjusted[upwards] = np.minimum(1.0, np.maximum.accumulate(p[upwards] * left))
    return adjusted
