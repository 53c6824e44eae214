"""Token F1: how many of the marked tokens are among the same number of highest tokens."""

import numpy as np

from attlas.mathematics.ranking import precision_at
from attlas.measures.support.marks import usable_marks
from attlas.measures.support.measure import Case, measure
from attlas.removing.erasures import Outcomes
from attlas.shapes import TokenMarks, TokenVector


def f1_at(scores: TokenVector, marks: TokenMarks, count: int) -> float:
    """The F1 of this many highest tokens; ties count as they would on average."""
    return 2 * count * precision_at(scores, marks, count) / (count + int(marks.sum()))


@measure(
    better="higher",
    kind="plausibility",
    needs=("marks",),
    by_rank=True,
    reading="The share of the marked tokens that are among the same number of highest tokens.",
    paper="DeYoung et al. 2020, arXiv:1911.03429",
)
def token_f1(case: Case, whole: Outcomes, outcomes: Outcomes) -> float:
    """The F1 of as many highest tokens as are marked: precision and recall are then equal."""
    marks = usable_marks(case)
    return np.nan if marks is None else f1_at(case.scores, marks, int(marks.sum()))
