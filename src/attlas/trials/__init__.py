"""Trials, one file each: experiments on the attention of a model itself."""

from attlas.trials.rewriting.effects import attention_use, shuffled_moves
from attlas.trials.support.findings import figures_with_intervals
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
    "attention_use",
    "figures_with_intervals",
    "seed_for",
    "shuffled_moves",
]
