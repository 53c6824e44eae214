"""IOU F1: whether the stretches of high tokens are the stretches people marked."""

import numpy as np

from attlas.data.spans import Range, runs
from attlas.measures.support.marks import usable_marks
from attlas.measures.support.measure import Case, measure
from attlas.removing.erasures import Outcomes

ENOUGH = 0.5


@measure(
    better="higher",
    kind="plausibility",
    needs=("marks",),
    by_rank=True,
    reading="The F1 of stretches of high tokens, each right if it shares half with a marked one.",
    paper="DeYoung et al. 2020, arXiv:1911.03429",
)
def iou_f1(case: Case, whole: Outcomes, outcomes: Outcomes) -> float:
    """The F1 of the runs of the highest tokens, as many tokens as are marked.

    A run is right if it shares at least half of the tokens in either with a marked run.
    """
    marks = usable_marks(case)
    if marks is None:
        return np.nan
    top = np.zeros(len(case), dtype=bool)
    top[case.order()[: int(marks.sum())]] = True
    found, true = runs(top.tolist()), runs(marks.tolist())
    right = sum(any(shared(one, other) >= ENOUGH for other in true) for one in found)
    return 2 * right / (len(found) + len(true))


def shared(one: Range, other: Range) -> float:
    """The share of the tokens in either of two runs that are in both."""
    common = max(0, min(one[1], other[1]) - max(one[0], other[0]))
    return common / (one[1] - one[0] + other[1] - other[0] - common)
