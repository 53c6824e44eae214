"""The p-values of findings: every way to turn signs gone through, Holm by hand, and the null."""

import json
from functools import cache
from itertools import product

import numpy as np
import pytest
from auditing.findings_sample import (
    AIMS,
    CEILING,
    CONTROL,
    METHODS,
    REMOVALS,
    SHUFFLED,
    collected_of,
    draw_figures,
)
from audits import TRUTH, bag_texts, small_audit
from known_models import copies_attended

from attlas.auditing.report.plots import make_agreement
from attlas.auditing.report.sections import make_table
from attlas.auditing.verdict.findings import findings, plausibility
from attlas.auditing.verdict.p_values import (
    above_other,
    above_shuffled,
    above_weights,
    adjust,
    agreement_beside,
    hold_out,
)
from attlas.auditing.verdict.verdict import verdict
from attlas.mathematics.grouping import halves
from attlas.results import Report
from attlas.results.support.report_sections import Figure, Finding

TEXTS = 20
PAIRS = np.repeat(np.arange(10), 2)


def by_every_turn(differences, groups=None):
    """The share of all ways to turn signs in which the sum is as large; adjusted over columns."""
    if groups is not None:
        differences = np.stack([differences[groups == name].sum(0) for name in np.unique(groups)])
    sizes = np.sqrt((differences**2).sum(axis=0))
    ways = np.array(list(product([1, -1], repeat=len(differences))))
    turned, observed = ways @ differences / sizes, differences.sum(axis=0) / sizes
    adjusted, least = np.empty(len(observed)), 0.0
    for rank, column in enumerate(order := np.argsort(-observed)):
        left = turned[:, order[rank:]].max(axis=1)
        least = max(least, (left >= observed[column] - 1e-9).mean())
        adjusted[column] = least
    return adjusted


def share(figures, method, start, removals, texts):
    """What each text adds to s of the method less the start's, as s is defined."""
    parts = []
    for measure, removal in product(AIMS, removals):
        of = {name: figures[measure, removal, name][texts] for name in (*METHODS, SHUFFLED)}
        room = (figures[measure, removal, CEILING][texts] - of[SHUFFLED]).sum()
        parts.append((of[method] - of[start]) / room)
    return np.mean(parts, axis=0)


def all_findings(found):
    """The findings of a report before they are adjusted, the one that stands apart last."""
    evidence, groups = found.evidence(REMOVALS)
    said = verdict(evidence, found.families, groups=groups, seed=found.seed)
    held = hold_out(found, REMOVALS)
    _, alike = make_agreement(found)
    return said, findings(said, alike, (), make_table(found), held), plausibility(held, said.method)


@pytest.mark.parametrize("groups", [None, PAIRS])
def test_each_is_the_share_of_turns_that_do_as_well(groups):
    random = np.random.default_rng(3)
    figures = draw_figures(random, TEXTS, shift=0.04)
    for measure, removal in product(AIMS, REMOVALS):
        figures[measure, removal, "decompx"] += 0.05 * (1 if measure == AIMS[0] else -1)
    kendall = random.normal(0.45, 0.2, size=TEXTS)
    found = collected_of(figures, kendall, groups, seed=5)
    _, second = halves(TEXTS, groups, 5)
    own = None if groups is None else groups[second]
    said, lines, apart = all_findings(found)
    assert said.bounds["delete"].s.value == pytest.approx(
        share(figures, METHODS[0], SHUFFLED, ["delete"], second).sum()
    )
    readings = np.stack(
        [share(figures, name, METHODS[0], REMOVALS, second) for name in METHODS[1:]], axis=1
    )
    of = {name: figures[AIMS[0], "delete", name][second] for name in (METHODS[0], CONTROL)}
    marked = {name: figures["auprc", "", name][second] for name in (METHODS[0], SHUFFLED)}
    above = share(figures, METHODS[0], SHUFFLED, ["delete"], second)[:, None]
    below = 0.5 - kendall[:, None]  # on all texts: no method is chosen
    side = 1 if below.sum() > 0 else -1
    wanted = [
        by_every_turn(above, own)[0],
        by_every_turn(readings - 0.01 / len(second), own)[1],
        by_every_turn((of[METHODS[0]] - of[CONTROL])[:, None], own)[0],
        2 * by_every_turn(side * below, groups)[0] if groups is not None else None,
        by_every_turn((marked[METHODS[0]] - marked[SHUFFLED])[:, None], own)[0],
    ]
    assert said.readings[0].method == "decompx"
    for line, p in zip((*lines, apart), wanted, strict=True):
        if p is not None:  # a million turns are drawn from
            assert line.p == pytest.approx(p)
            assert 0 < p < 1


def test_less_than_a_point_more_on_every_text_is_no_better_reading():
    figures = draw_figures(np.random.default_rng(1), TEXTS, shift=0.3)
    for measure, removal in product(AIMS, REMOVALS):
        room = figures[measure, removal, CEILING] - figures[measure, removal, SHUFFLED]
        for name in METHODS[1:]:
            figures[measure, removal, name] = figures[measure, removal, METHODS[0]] + 0.005 * room
    _, lines, _ = all_findings(collected_of(figures, np.full(TEXTS, 0.7)))
    (better,) = (each for each in lines if "better reading" in each.title)
    assert better.title == "No better reading" and better.p == pytest.approx(1.0)


def test_claims_say_what_is_above_what_and_on_which_texts():
    figures = draw_figures(np.random.default_rng(0), TEXTS, shift=0.3)
    figures["auprc", "", METHODS[0]][:] = np.nan
    _, second = halves(TEXTS, None, 0)
    figures["auprc", "", METHODS[0]][second[:4]] = 0.9
    said, lines, apart = all_findings(collected_of(figures, np.full(TEXTS, 0.7)))
    first = said.readings[0].method
    assert [each.claim for each in (*lines, apart)] == [
        "raw_attention above shuffled scores, on 10 texts held out",
        f"{first} a point above raw_attention, one of 2 readings, on 10 texts held out",
        "raw_attention above frequency, on 10 texts held out",
        "τ above 0.5, two-sided, on 20 texts",
        "raw_attention above shuffled, on 4 texts held out",
    ]
    assert lines[0].p == 1 / 2**10 and apart.p == 1 / 2**4
    assert lines[3].p == pytest.approx(2 / 10_000)  # the smallest there is, two-sided


def test_the_texts_that_chose_the_method_have_no_say():
    figures = draw_figures(np.random.default_rng(1), TEXTS)
    first, _ = halves(TEXTS, None, 0)
    before = [above_of(figures, kind) for kind in (above_shuffled, above_other)]
    for (_, _, method), values in figures.items():
        if method == METHODS[0]:
            values[first] += 5.0
    assert [above_of(figures, kind) for kind in (above_shuffled, above_other)] == before


def above_of(figures, kind):
    held = hold_out(collected_of(figures, np.zeros(TEXTS)), REMOVALS)
    if kind is above_other:
        return above_other(held, AIMS[0], "mask", METHODS[0], CONTROL)
    return above_shuffled(held, METHODS[0], "mask")


def line(p):
    return Finding("title", "sentence", Figure(0.5), "standing", claim="a claim", p=p)


def test_holm_by_hand():
    """Of 4: .01 × 4, then .02 × 3, then .03 × 2 (no less than .06), then .5."""
    given = [line(0.02), line(None), line(0.5), line(0.01)]
    lines, apart = adjust(given, line(0.03))
    assert [each.p for each in lines] == [pytest.approx(0.06), None, 0.5, pytest.approx(0.04)]
    assert apart.p == pytest.approx(0.06)
    assert lines[1] == given[1] and {each.claim for each in lines} == {"a claim"}


def test_with_nothing_to_adjust_nothing_is():
    assert adjust((), None) == ((), None)
    assert adjust((line(None),), None) == ((line(None),), None)
    assert adjust((line(0.2),), None)[0][0].p == 0.2


def test_where_nothing_tells_there_is_no_p():
    figures = draw_figures(np.random.default_rng(2), 6)
    figures[AIMS[0], "delete", CONTROL][:] = np.nan
    held = hold_out(collected_of(figures, np.zeros(6)), REMOVALS)
    assert above_other(held, AIMS[0], "delete", METHODS[0], CONTROL) == (
        "raw_attention above frequency, on 0 texts held out",
        None,
    )


def test_where_nothing_is_above_anything_few_reports_have_a_small_p():
    """All differences are as likely below zero as above: one report in twenty at the most.

    Without Holm's method it would be about one in five.
    """
    _, adjusted = smallest_of_nulls(200)
    assert 0 < (adjusted <= 0.05).sum() <= 20  # more: 1 in 1,000 where it is one in twenty


def smallest_of_nulls(reports):
    """The smallest p-value of each of so many reports, as it is and adjusted."""
    given = [null_findings(seed) for seed in range(reports)]
    lines = [given, [adjust(each, None)[0] for each in given]]
    return [np.array([min(line.p for line in each) for each in kind]) for kind in lines]


def null_findings(seed):
    random = np.random.default_rng(seed)
    found = collected_of(draw_figures(random, 16), random.normal(0.5, 0.2, size=12), seed=seed)
    held = hold_out(found, REMOVALS)
    chances = [
        above_shuffled(held, METHODS[0], "mask"),
        above_weights(held, METHODS[0], METHODS[1 + seed % 2], METHODS[1:]),
        above_other(held, AIMS[0], "delete", METHODS[0], CONTROL),
        agreement_beside(found, 0.5),
        above_other(held, "auprc", "", METHODS[0], SHUFFLED),
    ]
    return [line(each.p) for each in chances]


@cache
def audited():
    texts = [" ".join(words) for words in product(["good", "bad", "GOOD", "BAD"], repeat=4)]
    marked = [each for each in texts if sum(word.isupper() for word in each.split()) == 1]
    return small_audit(copies_attended(), marked[:24], removal=["mask"])


def test_an_audit_adjusts_over_what_it_tests_and_it_comes_back():
    """The weights are all there is on 12 texts held out: 1 of 4,096 turns, and there are two."""
    first, control = audited().findings
    assert first.p == pytest.approx(2 / 2**12)
    assert control.title.startswith("Scores made without the model") and control.p >= first.p
    assert audited().verdict.tested_on == 12 and "12 texts held out" in first.claim
    back = Report.from_dict(json.loads(json.dumps(audited().to_dict())))
    assert back.findings == audited().findings


def test_weights_that_nothing_reads_have_no_small_p():
    report = small_audit(data=bag_texts(24), methods=["raw_attention", TRUTH], removal=["mask"])
    assert report.findings[0].title.startswith("The weights") and report.findings[0].p > 0.05
