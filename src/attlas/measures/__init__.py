"""Measures, one file each: a measure takes an explanation and says how good it is."""

from attlas.measures.support.measure import (
    BETTER,
    KINDS,
    MEASURES,
    NEEDS,
    NOTHING,
    PAIRS,
    Case,
    Measure,
    Occasion,
    is_circular,
)
from attlas.measures.support.sizes import sizes

__all__ = [
    "BETTER",
    "KINDS",
    "MEASURES",
    "NEEDS",
    "NOTHING",
    "PAIRS",
    "Case",
    "Measure",
    "Occasion",
    "is_circular",
    "sizes",
]
