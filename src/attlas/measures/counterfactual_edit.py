"""Counterfactual edit: how well the scores rank what editors changed above the rest."""

import numpy as np

from attlas.mathematics.ranking import average_precision
from attlas.measures.support.marks import usable_marks
from attlas.measures.support.measure import Case, measure
from attlas.removing.erasures import Outcomes


@measure(
    better="higher",
    kind="plausibility",
    needs=("marks", "edits"),
    by_rank=True,
    reading="The average precision of the words that editors changed to turn the label.",
    paper="Kaushik et al. 2020, arXiv:1909.12434",
)
def counterfactual_edit(case: Case, whole: Outcomes, outcomes: Outcomes) -> float:
    """The average precision of the tokens that editors changed, which are the marks here."""
    marks = usable_marks(case)
    return np.nan if marks is None else average_precision(case.scores, marks)
