"""Figures of texts as estimates: means with intervals, over those where one is known."""

from collections.abc import Mapping
from dataclasses import asdict
from typing import Any

import numpy as np

from attlas.mathematics.intervals import Estimate, bootstrap_mean
from attlas.shapes import TextValues


def mean_of(values: TextValues) -> Estimate | None:
    """The mean with its interval; none where nothing is known of any text."""
    known = values[~np.isnan(values)]
    return bootstrap_mean([[value] for value in known.tolist()]) if len(known) else None


def estimates_of(figures: Mapping[str, TextValues]) -> dict[str, Any]:
    """The mean of each figure with its interval, as JSON, and the standard deviation over texts."""
    found: dict[str, Any] = {}
    for name, values in figures.items():
        estimate = mean_of(values)
        if estimate is not None:
            found[name] = {**asdict(estimate), "deviation": float(np.nanstd(values))}
    return found


def written(estimate: Estimate | None) -> str:
    """An estimate in words: the mean, and the interval in brackets."""
    if estimate is None:
        return "unknown"
    return f"{estimate.mean:.2f} ({estimate.low:.2f} to {estimate.high:.2f})"
