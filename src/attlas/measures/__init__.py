"""Measures: each takes an explanation and says how good it is."""

from attlas.measures.auprc import auprc
from attlas.measures.comprehensiveness import comprehensiveness
from attlas.measures.counterfactual_edit import counterfactual_edit
from attlas.measures.counterfactual_flip import counterfactual_flip
from attlas.measures.decision_flip import decision_flip
from attlas.measures.infidelity import infidelity
from attlas.measures.iou_f1 import iou_f1
from attlas.measures.log_odds import log_odds
from attlas.measures.monotonicity import monotonicity
from attlas.measures.randomisation import randomisation
from attlas.measures.sensitivity import sensitivity
from attlas.measures.sufficiency import sufficiency
from attlas.measures.support.circular import is_circular
from attlas.measures.support.measure import (
    BETTER,
    KINDS,
    MEASURES,
    NEEDS,
    NOTHING,
    Case,
    Measure,
    Occasion,
)
from attlas.measures.support.sizes import sizes
from attlas.measures.tau_leave_one_out import tau_leave_one_out
from attlas.measures.token_f1 import token_f1

__all__ = [
    "BETTER",
    "KINDS",
    "MEASURES",
    "NEEDS",
    "NOTHING",
    "Case",
    "Measure",
    "Occasion",
    "auprc",
    "comprehensiveness",
    "counterfactual_edit",
    "counterfactual_flip",
    "decision_flip",
    "infidelity",
    "iou_f1",
    "is_circular",
    "list_measures",
    "log_odds",
    "monotonicity",
    "randomisation",
    "sensitivity",
    "sizes",
    "sufficiency",
    "tau_leave_one_out",
    "token_f1",
]


def list_measures() -> list[str]:
    """The names of all measures."""
    return MEASURES.names()
