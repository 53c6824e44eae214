"""Trials, one file each: a trial takes questions and puts the attention itself to a test."""

from attlas.trials.rewriting.effects import used
from attlas.trials.support.scope import KINDS, Opened, Scope
from attlas.trials.support.trial import COSTS, NEEDS, TRIALS, Trial, Tried, seed_for

__all__ = [
    "COSTS",
    "KINDS",
    "NEEDS",
    "TRIALS",
    "Opened",
    "Scope",
    "Trial",
    "Tried",
    "list_trials",
    "seed_for",
    "used",
]


def list_trials() -> list[str]:
    """Return the names of all trials."""
    return TRIALS.names()
