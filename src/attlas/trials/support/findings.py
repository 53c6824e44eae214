"""Means over texts with their intervals, as JSON and in words; NaN is skipped."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from attlas.mathematics.intervals import Estimate, bootstrap_mean, bootstrap_means
from attlas.results.support.report_sections import Figure, TrialFigure
from attlas.shapes import TextGroups, TextValues
from attlas.trials.support.trial import TrialOutcome


def estimate_mean(values: TextValues) -> Estimate | None:
    """The mean over texts with its interval; None if no text has a value."""
    known = values[~np.isnan(values)]
    return bootstrap_mean([[value] for value in known.tolist()]) if len(known) else None


def estimates_as_json(figures: Mapping[str, TextValues]) -> dict[str, Any]:
    """Each figure as JSON: its mean over texts, the interval, and the standard deviation."""
    found: dict[str, Any] = {}
    for name, values in figures.items():
        estimate = estimate_mean(values)
        if estimate is not None:
            found[name] = {**asdict(estimate), "deviation": float(np.nanstd(values))}
    return found


def figures_with_intervals(
    outcome: TrialOutcome, seed: int = 0, groups: TextGroups | None = None
) -> tuple[TrialFigure, ...]:
    """The mean of each figure of a trial with its interval, and its mean ceiling.

    `groups` says which of the outcome's texts belong together; such texts are resampled together.
    """
    columns = np.stack([*outcome.figures.values()], axis=1)
    means = bootstrap_means(columns.astype(np.float64), seed, groups)
    return tuple(
        TrialFigure(name, _figure(each), _mean_ceiling(outcome.ceilings.get(name)))
        for name, each in zip(outcome.figures, means, strict=True)
    )


def _figure(each: Estimate) -> Figure:
    mean, low, high = (
        None if np.isnan(value) else value for value in (each.mean, each.low, each.high)
    )
    return Figure(mean, low, high, each.inputs)


def _mean_ceiling(ceiling: float | TextValues | None) -> float | None:
    if ceiling is None or np.isnan(ceiling).all():
        return None
    return float(np.nanmean(ceiling))


def in_words(estimate: Estimate | None) -> str:
    """An estimate in words: the mean, with the interval in brackets."""
    if estimate is None:
        return "unknown"
    return f"{estimate.mean:.2f} ({estimate.low:.2f} to {estimate.high:.2f})"
