"""Confidence intervals: of means, of shares, and of several ratios at once."""

from collections.abc import Sequence
from dataclasses import dataclass, replace
from functools import lru_cache

import numpy as np
from numpy.typing import NDArray
from scipy.special import betaincinv, stdtrit

from attlas.errors import UsageError
from attlas.mathematics.grouping import summed_by_group
from attlas.shapes import TextGroups, TextTerms, TextValues

LEVEL = 0.95
UNSEEN = 3.0  # what none of k texts shows may still hold for 3 of k: −ln 0.05, rounded up
FEWEST = 3  # texts: of so many, a draw is often one of them alone, and shows nothing
DRAWS = 2000
CHUNK = 100  # draws that are in memory at once


@dataclass(frozen=True)
class Estimate:
    """A mean, its interval, and the number of inputs it comes from."""

    mean: float
    low: float
    high: float
    inputs: int


def bootstrap_mean(values: Sequence[Sequence[float]], seed: int = 0) -> Estimate:
    """The mean of all values, with a 95 % percentile interval from resampled inputs.

    `values` has one list for each input; values of one input stay together. If all values are the
    same, the interval has no width, although another input could still differ.
    """
    if not values or not all(map(len, values)):
        raise UsageError("an interval needs at least one input, and a value from each")
    sums = np.array([sum(each) for each in values], dtype=np.float64)
    counts = np.array([len(each) for each in values])
    drawn = np.random.default_rng(seed).integers(len(values), size=(DRAWS, len(values)))
    means = sums[drawn].sum(axis=1) / counts[drawn].sum(axis=1)
    low, high = np.quantile(means, [(1 - LEVEL) / 2, (1 + LEVEL) / 2])
    return Estimate(float(sums.sum() / counts.sum()), float(low), float(high), len(values))


def clopper_pearson(successes: int, count: int, level: float = LEVEL) -> Estimate:
    """A share with its exact interval: 0 of 1,000 is at most 0.37 %."""
    if not 0 <= successes <= count or count < 1:
        raise UsageError(
            f"{successes} of {count} is no share: count is at least 1, successes 0 to count"
        )
    tail = (1 - level) / 2
    low = betaincinv(successes, count - successes + 1, tail) if successes else 0.0
    high = betaincinv(successes + 1, count - successes, 1 - tail) if successes < count else 1.0
    return Estimate(successes / count, float(low), float(high), count)


def student_mean(values: Sequence[float | int]) -> Estimate:
    """The mean of few values, one for each seed, with Student's 95 % interval; NaN for one value.

    Resampling five values would give an interval that is too narrow.
    """
    if not len(values):
        raise UsageError("a mean needs at least one value")
    mean, count = float(np.mean(values)), len(values)
    if count == 1:
        return Estimate(mean, float("nan"), float("nan"), 1)
    error = float(np.std(values, ddof=1)) / count**0.5
    half = float(stdtrit(count - 1, (1 + LEVEL) / 2)) * error
    return Estimate(mean, mean - half, mean + half, count)


def allow_unseen(
    found: Estimate, weights: TextValues, groups: TextGroups | None = None
) -> Estimate:
    """The interval of a weighted mean of shares, made wide enough for texts that were not seen.

    Of k texts, 3 in k may be of a kind that none of them shows: they may lie anywhere between 0 and
    1, and weigh as much as a text can: 1, or more if that was seen.
    """
    known = summed_by_group(np.nan_to_num(weights), groups)
    share = min(UNSEEN / len(known), 1.0)
    heaviest = share * max(1.0, float(known.max()))
    unseen = heaviest / (heaviest + (1 - share) * float(known.mean()))
    mean = 0.0 if np.isnan(found.mean) else min(max(found.mean, 0.0), 1.0)
    low, high = (1 - unseen) * mean, mean + unseen * (1 - mean)
    if not np.isnan(found.mean):
        low, high = max(min(found.low, low), 0.0), min(max(found.high, high), 1.0)
    return replace(found, mean=mean, low=low, high=high)


def simultaneous_bounds(
    numerators: TextTerms,
    denominators: TextTerms,
    seed: int = 0,
    groups: TextGroups | None = None,
) -> list[Estimate]:
    """Statistics of the same texts, with simultaneous 95 % intervals.

    A statistic is the mean over its terms of a ratio of two sums over texts; with denominators of
    1, a mean. Texts are resampled, those of a group together. In each draw, the largest of the
    statistics' differences, in units of its own error in that draw, counts, and its quantile sets
    the width of all intervals. NaN values are left out. A statistic is NaN if the denominators of a
    term sum to zero, and with very few texts an interval can be infinite.
    """
    if not len(numerators):
        raise UsageError("bounds need at least one text")
    ratios = _ratios(numerators, denominators, groups)
    found, errors = ratios.of(np.ones((1, ratios.units)))
    # Smaller errors are rounding: the statistic is the same on every text.
    varies = errors[0] > 1e-6 * np.abs(found[0])
    drawn = _drawn(ratios.units, seed)
    largest = []
    for start in range(0, DRAWS, CHUNK):
        values, spread = ratios.of(drawn[start : start + CHUNK].astype(np.float64))
        # A draw without the few texts that differ shows no error of its own: that of all is taken.
        blind = (spread < 1e-6 * errors) & (ratios.units > FEWEST)
        own = np.where(blind, errors, spread)
        largest.append(_in_errors(values - found, own)[:, varies].max(axis=1, initial=0.0))
    half = np.full(len(varies), 0.0 if ratios.units > 1 else np.inf)
    half[varies] = np.quantile(largest, LEVEL, method="higher") * errors[0, varies]
    known = ~np.isnan(numerators + denominators)
    texts = known.all(axis=2).sum(axis=0)
    columns = zip(found[0], found[0] - half, found[0] + half, texts, strict=True)
    return [Estimate(float(at), float(low), float(high), int(n)) for at, low, high, n in columns]


def ratio_errors(
    numerators: TextTerms, denominators: TextTerms, groups: TextGroups | None = None
) -> NDArray[np.float64]:
    """The standard error of each statistic of `simultaneous_bounds`."""
    ratios = _ratios(numerators, denominators, groups)
    _, errors = ratios.of(np.ones((1, ratios.units)))
    corrected: NDArray[np.float64] = errors[0] * np.sqrt(ratios.units / max(ratios.units - 1, 1))
    return corrected


class _Ratios:
    """Means of ratios of sums, and their errors by the delta method, from sums of products.

    `values` are `[unit, statistic, numerators and denominators]`.
    """

    def __init__(self, values: NDArray[np.float64]) -> None:
        self.units, self.statistics, self.width = values.shape
        products = np.einsum("usp,usq->uspq", values, values)
        self.sums = values.reshape(self.units, -1)
        self.products = products.reshape(self.units, -1)

    def of(self, weights: NDArray[np.float64]) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
        """The statistics and their errors, `[draw, statistic]`, with each unit weighted."""
        shape = (len(weights), self.statistics, self.width)
        above, below = np.split((weights @ self.sums).reshape(shape), 2, axis=2)
        products = (weights @ self.products).reshape(*shape, self.width)
        below = np.where(below == 0, np.nan, below)
        ratios = above / below
        # A unit moves a ratio by its numerator minus its fair share, divided by the total.
        slopes = np.concatenate([1 / below, -ratios / below], axis=2) / (self.width // 2)
        squares = np.einsum("dsp,dspq,dsq->ds", slopes, products, slopes)
        return ratios.mean(axis=2), np.sqrt(np.maximum(squares, 0.0))


def _ratios(numerators: TextTerms, denominators: TextTerms, groups: TextGroups | None) -> _Ratios:
    known = ~np.isnan(numerators + denominators)
    both = [np.where(known, each, 0.0) for each in (numerators, denominators)]
    return _Ratios(summed_by_group(np.concatenate(both, axis=2), groups))


def _in_errors(
    differences: NDArray[np.float64], errors: NDArray[np.float64]
) -> NDArray[np.float64]:
    """Absolute differences in units of their errors; infinite if the error is zero."""
    unknown = np.full_like(differences, np.inf)
    return np.divide(np.abs(differences), errors, out=unknown, where=errors > 0)


@lru_cache(maxsize=8)  # a report resamples the same texts for each of its figures
def _drawn(units: int, seed: int) -> NDArray[np.int16]:
    """How often each unit is drawn, `[draw, unit]`."""
    if not units:
        return np.zeros((DRAWS, 0), dtype=np.int16)
    even = np.full(units, 1 / units)
    return np.random.default_rng(seed).multinomial(units, even, size=DRAWS).astype(np.int16)


def bootstrap_means(
    values: NDArray[np.float64], seed: int = 0, groups: TextGroups | None = None
) -> list[Estimate]:
    """The mean of each column over texts, `[text, column]`, like `bootstrap_mean` of each.

    NaN values are left out; the mean of an empty column is NaN. Texts of a group stay together.
    """
    known = ~np.isnan(values)
    sums = summed_by_group(np.where(known, values, 0.0), groups)
    counts = summed_by_group(known.astype(np.float64), groups)
    drawn = _drawn(len(sums), seed).astype(np.float64)
    totals, seen = drawn @ sums, drawn @ counts
    means = np.divide(totals, seen, out=np.full(totals.shape, np.nan), where=seen > 0)
    found = []
    for column in range(values.shape[1]):
        inputs = int(known[:, column].sum())
        if not inputs:
            found.append(Estimate(float("nan"), float("nan"), float("nan"), 0))
            continue
        tails = [(1 - LEVEL) / 2, (1 + LEVEL) / 2]
        low, high = np.nanquantile(means[:, column], tails)
        mean = sums[:, column].sum() / counts[:, column].sum()
        found.append(Estimate(float(mean), float(low), float(high), inputs))
    return found
