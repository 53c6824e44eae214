"""The findings: each sentence agrees with the interval that stands beside it."""

import re

import numpy as np
import pytest

from attlas.auditing.verdict.findings import findings
from attlas.mathematics.intervals import Estimate
from attlas.results.support.report_sections import Figure, Standing
from attlas.results.support.verdict import Bounds, OtherReading, Verdict

S = Figure(0.6, 0.5, 0.7, 60)


def said(less_control=None, less_reference=None, **others):
    bounds = Bounds(
        S, less_control, less_reference, "position", "gradient", S, 40.0, "open", "because"
    )
    return Verdict("partly", ".", ".", ".", "raw_attention", {"mask": bounds}, 60, **others)


def claims(sentence):
    return re.findall(r"surely (more|less)", sentence)


@pytest.mark.parametrize("which", ["less_control", "less_reference"])
@pytest.mark.parametrize(
    ("low", "high", "is_sure"), [(0.1, 0.3, True), (-0.3, -0.1, True), (-0.1, 0.1, False)]
)
def test_surely_means_that_the_whole_interval_is_on_one_side(which, low, high, is_sure):
    figure = Figure((low + high) / 2, low, high, 60)
    (line,) = [
        each for each in findings(said(**{which: figure}), None, ()) if each.figure == figure
    ]
    assert bool(claims(line.sentence)) == is_sure
    assert f"{abs((low + high) / 2):.2f}" in line.sentence


def read_as(method, least=0.8):
    found = Figure(0.9, least, 0.95, 60)
    bounds = Bounds(found, None, None, "position", "gradient", S, 40.0, "for", "because")
    return Verdict("partly", ".", ".", ".", method, {"mask": bounds}, 60)


def plain(low, high, method="raw_attention", removal="mask"):
    return Standing(method, "W", removal, Figure((low + high) / 2, low, high, 60))


def titles(verdict, *standings):
    return [each.title for each in findings(verdict, None, (), standings)]


def test_the_first_finding_says_how_attention_was_read():
    assert titles(read_as("raw_attention")) == ["Attention finds most of what matters"]
    assert titles(read_as("attention_rollout")) == [
        "Read as attention_rollout, attention finds most of what matters"
    ]


def test_what_the_weights_find_as_they_are_is_told_if_it_is_surely_less():
    rollout = read_as("attention_rollout")
    assert titles(rollout, plain(-0.2, 0.2))[1:] == [
        "Taken as it is, attention may find no more than chance"
    ]
    assert titles(rollout, plain(-1.0, -0.9))[1:] == [
        "Taken as it is, attention finds less than chance: it points at what matters least"
    ]
    assert titles(rollout, plain(0.1, 0.4))[1:] == [
        "Taken as it is, attention finds less than half of what matters"
    ]
    assert len(titles(rollout, plain(0.5, 0.8))) == 1  # perhaps no less
    assert len(titles(rollout, plain(-0.2, 0.2, removal="delete"))) == 1
    assert len(titles(rollout, plain(-0.2, 0.2, method="effective_attention"))) == 1
    assert len(titles(rollout, plain(np.nan, np.nan))) == 1  # nothing can be found


@pytest.mark.parametrize(
    ("low", "high", "least"),
    [(0.1, 0.4, -0.2), (-0.2, 0.2, -0.2), (-0.31, 0.2, -0.4), (-1, -0.9, -1)],
)
def test_the_plot_of_a_finding_reaches_as_far_as_its_interval(low, high, least):
    given = [plain(low, high)]
    spans = [each.span for each in findings(read_as("attention_rollout"), None, (), given)]
    assert spans == [(-0.2, 1.0), (least, 1.0)]


@pytest.mark.parametrize(
    ("low", "high", "title"),
    [(0.1, 0.3, "agree little"), (0.6, 0.8, "Methods agree"), (0.4, 0.6, "How far")],
)
def test_agreement_is_low_or_high_if_the_interval_is(low, high, title):
    found = findings(said(), Estimate((low + high) / 2, low, high, 60), ())
    assert any(title in each.title for each in found)


def test_there_are_at_most_five_and_unknown_figures_make_none():
    reading = OtherReading("attn_lrp", "P", S, Figure(0.2, 0.1, 0.3, 60), better=True)
    figure = Figure(0.2, 0.1, 0.3, 60)
    agreement = Estimate(0.2, 0.1, 0.3, 60)
    full = said(figure, figure, used=figure, readings=(reading,))
    assert len(findings(full, agreement, ())) == 5
    unknown = Figure(np.nan, np.nan, np.nan, 0)
    assert len(findings(said(unknown, unknown, used=unknown), None, ())) == 1


def test_an_interval_from_little_to_most_is_not_called_half():
    assert titles(read_as("raw_attention", least=0.4)) == [
        "Attention finds some or most of what matters"
    ]
