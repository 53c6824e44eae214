"""The lines of the first screen, and the control that borrows another text's scores."""

import numpy as np
import pytest
from auditing.findings_sample import CONTROL, METHODS, REMOVALS, collected_of, draw_figures
from known_models import WEIGHTS, bag_of_words, text_of

from attlas.auditing.plan import plan_audit
from attlas.auditing.verdict.findings import _agreement, _control
from attlas.auditing.verdict.p_values import hold_out
from attlas.auditing.work.explained import LENT, OTHER, explain_batch
from attlas.mathematics.intervals import Estimate
from attlas.results.support.report_sections import Cell, Column, Figure, MethodRow, ReportTable
from attlas.results.verdict import Bounds, Verdict


def table(weights, control):
    columns = (Column("comprehensiveness", "delete", "higher", "faithfulness"),)
    rows = [
        MethodRow(name, family, (Cell(Figure(*figure, 40)),))
        for name, family, figure in ((METHODS[0], "W", weights), (CONTROL, "control", control))
    ]
    return ReportTable(columns, tuple(rows))


def held():
    figures = draw_figures(np.random.default_rng(0), 8)
    return hold_out(collected_of(figures, np.full(8, 0.4)), REMOVALS)


@pytest.mark.parametrize(
    ("weights", "said"),
    [((0.5, 0.4, 0.6), "does worse than"), ((0.3, 0.19, 0.4), "is not surely below")],
)
def test_a_control_is_below_where_the_intervals_are_apart(weights, said):
    bounds = {"delete": Bounds(Figure(0.5), None, "open", "")}
    verdict = Verdict("partly", "", METHODS[0], None, bounds, 4, 4, None)
    (line,) = _control(table(weights, (0.15, 0.1, 0.2)), verdict, held())
    assert f"{said} raw_attention" in line.sentence
    assert (line.figure.value, line.mark) == (0.15, weights[0])


@pytest.mark.parametrize(("mean", "title"), [(0.3, "Methods agree little"), (0.7, "Methods agree")])
def test_agreement_is_little_below_a_half(mean, title):
    (line,) = _agreement(Estimate(mean, mean - 0.1, mean + 0.1, 9), held())
    assert (line.title, line.mark) == (title, 0.5)


def test_a_text_gets_the_scores_of_another_of_its_length_and_never_its_own():
    texts = [text_of(count, seed, WEIGHTS) for seed, count in enumerate([3, 4, 3, 3])]
    plan = plan_audit(bag_of_words(), texts, [LENT], ["sufficiency"], [], removal=["mask"])
    found = explain_batch(plan, range(4)).texts
    scores = {each.number: each.scores for each in found}
    assert OTHER not in scores[1]  # no other is as long
    lenders = []
    for number in (0, 2, 3):
        (lender,) = (
            other
            for other in (0, 2, 3)
            if np.array_equal(scores[number][OTHER], scores[other][LENT])
        )
        assert lender != number
        lenders.append(lender)
    assert sorted(lenders) == [0, 2, 3]
