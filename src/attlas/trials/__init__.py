"""Trials, one file each: a trial takes questions and puts the attention itself to a test."""

from attlas.trials.rewriting.effects import used
from attlas.trials.support.scope import KINDS, OpenSite, Scope
from attlas.trials.support.trial import COSTS, NEEDS, TRIALS, Trial, TrialOutcome, seed_for

__all__ = [
    "COSTS",
    "KINDS",
    "NEEDS",
    "TRIALS",
    "OpenSite",
    "Scope",
    "Trial",
    "TrialOutcome",
    "list_trials",
    "seed_for",
    "used",
]


def list_trials() -> list[str]:
    """Return the names of all trials."""
    return TRIALS.names()
