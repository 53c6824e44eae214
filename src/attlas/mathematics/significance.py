"""Whether scores do better than scores that know nothing, on one text and over a data set."""

from dataclasses import dataclass
from functools import lru_cache

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from attlas.errors import UnknownNameError, UsageError
from attlas.mathematics.grouping import summed_by_group
from attlas.shapes import MethodValues, MethodVector, TextGroups, TextValues

DRAWS = 9999
CHUNK = 1000  # draws that are counted at once
BETTER = ("higher", "lower")


def per_text_p(value: float, controls: TextValues, better: str, random: Generator) -> float:
    """The p-value of a figure among those of controls: (b + U) / (B + 1), ties broken at random.

    Uniform between 0 and 1 where the figure is drawn as its B controls are, however often they
    tie. Controls that are not a number are left out; so is a text whose value is none.
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
    """For each method: p alone, and adjusted so that one error among all is as rare."""

    p: MethodVector
    adjusted: MethodVector


def sign_flip(
    differences: MethodValues,
    seed: int = 0,
    groups: TextGroups | None = None,
    draws: int = DRAWS,
) -> SignFlips:
    """Test, one-sided, whether each method's differences lie above zero.

    Under the null a text's differences are as likely with all their signs turned. The statistic is
    the mean in units of its error; the adjustment is the step-down of Westfall and Young on its
    maximum. All signs are gone through where they are no more than `draws`. A value that is not a
    number is left out; texts of one group turn together. With fewer than 20 texts whose differences
    are very skewed, adjusted values are too small up to twice as often as they say.
    """
    if draws < 1:
        raise UsageError(f"draws are at least 1, not {draws}")
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
        # Of each method, the most that it or any below it comes to.
        most = np.maximum.accumulate(turned[:, downwards[::-1]], axis=1)[:, ::-1]
        together += (most >= observed[downwards]).sum(axis=0)
    adjusted = np.empty(len(observed))
    adjusted[downwards] = np.maximum.accumulate(together / total)
    return SignFlips(*(np.where(missing, np.nan, each) for each in (alone / total, adjusted)))


@lru_cache(maxsize=2)  # a report turns the same texts' signs for each of its figures
def _signs(count: int, draws: int, seed: int) -> NDArray[np.int8]:
    """Every way to sign so many values, or drawn ones; the values as they are come first."""
    if 2**count <= draws:
        ways = np.arange(2**count)[:, None] >> np.arange(count)
        return (1 - 2 * (ways % 2)).astype(np.int8)
    signs = np.zeros((draws + 1, count), dtype=np.int8)
    signs[1:] = np.random.default_rng(seed).integers(2, size=(draws, count), dtype=np.int8)
    signs *= -2  # in place: there may be many texts
    signs += 1
    return signs


def holm(p: MethodVector) -> MethodVector:
    """p-values adjusted for being several, by Holm's step-down; those not a number stay so."""
    adjusted = np.full(len(p), np.nan)
    upwards = np.argsort(p, kind="stable")
    upwards = upwards[~np.isnan(p[upwards])]
    left = np.arange(len(upwards), 0, -1)
    adjusted[upwards] = np.minimum(1.0, np.maximum.accumulate(p[upwards] * left))
    return adjusted
