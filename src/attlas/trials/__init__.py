"""Trials: each takes questions and puts the attention itself to a test."""

from attlas.trials.adversarial_attention import adversarial_attention
from attlas.trials.adversarial_keys import adversarial_keys
from attlas.trials.agreement import agreement
from attlas.trials.consistent_adversary import consistent_adversary
from attlas.trials.erasure import erasure
from attlas.trials.head_patterns import head_patterns
from attlas.trials.identifiability import identifiability
from attlas.trials.key_permutation import key_permutation
from attlas.trials.permutation import permutation
from attlas.trials.rewriting.effects import used
from attlas.trials.support.scope import KINDS, Opened, Scope
from attlas.trials.support.trial import COSTS, NEEDS, TRIALS, Trial, Tried, seed_for, trial
from attlas.trials.token_identifiability import token_identifiability
from attlas.trials.token_mixing import token_mixing
from attlas.trials.uniform import uniform

__all__ = [
    "COSTS",
    "KINDS",
    "NEEDS",
    "TRIALS",
    "Opened",
    "Scope",
    "Trial",
    "Tried",
    "adversarial_attention",
    "adversarial_keys",
    "agreement",
    "consistent_adversary",
    "erasure",
    "head_patterns",
    "identifiability",
    "key_permutation",
    "permutation",
    "seed_for",
    "token_identifiability",
    "token_mixing",
    "trial",
    "uniform",
    "used",
]


def list_trials() -> list[str]:
    """The names of all trials."""
    return TRIALS.names()
