"""AUPRC: how well the scores rank what people marked above the rest."""

import numpy as np

from attlas.mathematics.ranking import average_precision
from attlas.measures.support.marks import usable_marks
from attlas.measures.support.measure import Case, measure
from attlas.removing.erasures import Outcomes


@measure(
    better="higher",
    kind="plausibility",
    needs=("marks",),
    by_rank=True,
    reading="The average precision of the marked tokens in the order of the scores.",
    paper="DeYoung et al. 2020, arXiv:1911.03429",
)
def auprc(case: Case, whole: Outcomes, outcomes: Outcomes) -> float:
    """The average precision of the marked tokens; ties count as they would on average."""
    marks = usable_marks(case)
    return np.nan if marks is None else average_precision(case.scores, marks)
