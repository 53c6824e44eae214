"""Plots as JSON: views can draw every plot, and values that do not fit are refused."""

import json
from dataclasses import replace

import numpy as np
import pytest
import torch
from results.report_sample import report, trial_plots

from attlas.errors import UnknownNameError, UsageError
from attlas.results import Report
from attlas.results.support import plots

AXES = {"x_label": "x", "y_label": "y", "reading": "how"}


@pytest.mark.parametrize("plot", trial_plots(), ids=lambda plot: plot["kind"])
def test_every_kind_is_json_and_fits(plot):
    plots.check_plot(json.loads(json.dumps(plot, allow_nan=False)))
    assert plot["title"] and plot["reading"]


def test_there_is_a_sample_of_every_kind():
    assert [plot["kind"] for plot in trial_plots()] == list(plots.KINDS)


def test_numbers_of_any_kind_and_what_is_none():
    made = plots.scatter("t", {"a": (torch.tensor([1, 2]), np.array([np.nan, 0.5]))}, **AXES)
    assert made["groups"] == [{"name": "a", "x": [1.0, 2.0], "y": [None, 0.5]}]
    table = plots.table("t", ("a", "b"), [["word", np.int64(3)], [None, np.inf]], reading="r")
    assert table["rows"] == [["word", 3], [None, None]]
    json.dumps([made, table], allow_nan=False)


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: plots.scatter("t", {"a": ([1, 2], [1])}, **AXES), "t: a: 2 places across, but 1"),
        (lambda: plots.curve("t", [1, 2], {"a": [1]}, **AXES), "t: a: 1 points, but 2 places"),
        (
            lambda: plots.curve("t", [1], {"a": [1]}, bands={"a": ([1], [1, 2])}, **AXES),
            "t: a: 2 points, but 1 places",
        ),
        (lambda: plots.matrix("t", ["r"], ["c"], [[1, 2]], **AXES), "2 numbers in a row, but 1"),
        (
            lambda: plots.maps("t", ["q"], ["k"], {"own": [[1], [1]]}, reading="r"),
            "t: own: 2 rows of numbers, but 1 names of rows",
        ),
        (lambda: plots.table("t", ["c"], [[1, 2]], reading="r"), "t: row 0: 2 cells, but 1 col"),
    ],
)
def test_values_that_do_not_fit_are_refused(make, message):
    with pytest.raises(UsageError, match=message):
        make()


@pytest.mark.parametrize(
    ("change", "message"),
    [
        ({"title": ""}, "needs a title and a reading"),
        (
            {"groups": [{"name": "a", "x": [1.0], "y": [float("nan")]}]},
            "cannot be drawn with these values of groups",
        ),
        ({"groups": [{"x": [1.0], "y": [1.0]}]}, "this cannot be drawn as a scatter"),
        ({"colour": "red"}, "cannot be drawn with these values of colour"),
    ],
)
def test_what_no_view_could_draw_is_refused(change, message):
    made = plots.scatter("t", {"a": ([1], [2])}, **AXES)
    plots.check_plot(made)
    with pytest.raises(UsageError, match=message):
        plots.check_plot({**made, **change})


def test_an_unknown_kind_is_refused():
    with pytest.raises(UnknownNameError, match="kind of plot 'pie'"):
        plots.check_plot({"kind": "pie", "title": "t", "reading": "r"})


def test_a_report_keeps_the_plots_and_takes_no_others():
    made = report()
    back = Report.from_dict(json.loads(json.dumps(made.to_dict(), allow_nan=False)))
    assert back.trials == made.trials and len(back.trials[0].plots) == len(plots.KINDS)
    with pytest.raises(UsageError):
        replace(made.trials[0], plots=({"kind": "bars", "title": "t", "reading": "r"},))
