"""Trials of a report: their plots on a page, and their figures where nothing can be drawn."""

from dataclasses import replace
from itertools import pairwise

import pytest
from results.report_sample import around, report, trial_plots
from views.test_report import HOSTILE, in_terminal

from attlas.results.support import plots
from attlas.results.support.report_sections import TrialFigure, TrialSection
from attlas.views import fragment

SHOWN = "<img src=x onerror=alert(1)>␛[31m"


def plotted(*made):
    return report(trials=(replace(report().trials[0], plots=tuple(made)),))


def hostile_trial():
    named = {"x_label": HOSTILE, "y_label": HOSTILE, "reading": HOSTILE}
    two = [HOSTILE, HOSTILE]
    made = (
        plots.scatter(HOSTILE, {HOSTILE: ([1, 2], [1, 2]), "b": ([1], [1])}, **named),
        plots.curve(HOSTILE, [1, 2], {HOSTILE: [1, 2], "b": [0, 1]}, **named),
        plots.bars(HOSTILE, {HOSTILE: 1}, x_label=HOSTILE, reading=HOSTILE),
        plots.violins(HOSTILE, {HOSTILE: [1, 2, 2]}, **named),
        plots.matrix(HOSTILE, two, two, [[1, 2], [3, 4]], **named),
        plots.maps(HOSTILE, two, two, {HOSTILE: [[1, 0], [0, 1]]}, reading=HOSTILE),
        plots.table(HOSTILE, two, [two], reading=HOSTILE),
    )
    figures = (TrialFigure(HOSTILE, around(0.1, 0.05), 0.3),)
    return report(trials=(TrialSection(HOSTILE, HOSTILE, HOSTILE, figures, HOSTILE, made),))


def test_a_terminal_tells_the_figures_and_where_the_plots_are():
    shown = " ".join(in_terminal(report()).split())
    assert "permutation Shuffled, the attention moves" in shown
    assert "total variation: 0.03 (0.02 to 0.04), 100 texts; at most 0.30" in shown
    assert "Drawn on the page: Output moved by the largest weight, Total variation" in shown
    assert "Drawn on the page" not in in_terminal(plotted())


def test_a_fragment_tells_the_same():
    made = fragment(report().payload())
    assert "total variation: 0.03 (0.02 to 0.04), 100 texts; at most 0.30" in made
    assert "Which attention: readout: last layer" in made and "Drawn on the page: " in made


def test_hostile_words_are_only_text_where_there_is_no_script():
    assert "\x1b" not in in_terminal(hostile_trial())
    made = fragment(hostile_trial().payload())
    assert "<img" not in made and "&lt;img" in made


def opened(show, made, **options):
    """The page with its trials unfolded."""
    tab = show(made.payload(), **options)
    tab.evaluate("document.querySelectorAll('.trial').forEach(each => each.open = true)")
    return tab


@pytest.mark.browser
def test_a_trial_is_one_line_with_a_small_plot_until_it_is_opened(show):
    tab = show(report().payload())
    trial = tab.locator("#attlas-trial-permutation")
    assert trial.bounding_box()["height"] < 40 and not trial.locator(".plots").is_visible()
    line = trial.locator("summary").first
    assert line.locator("h3").inner_text() == "permutation"
    assert line.locator(".figure").inner_text() == "0.03"
    style = "(each) => [each.style.left, each.style.width].map(parseFloat)"
    reach = line.locator(".reach").evaluate(style)  # from 0 to the ceiling, 0.3
    assert reach == pytest.approx([100 * 0.02 / 0.3, 100 * 0.02 / 0.3], abs=0.1)
    line.focus()
    tab.keyboard.press("Enter")
    assert trial.locator(".plots").is_visible()


@pytest.mark.browser
def test_tokens_that_filled_up_a_text_are_not_drawn(show):
    weights = {"own": [[0.25, 0.75, 0], [1, 0, 0]]}
    made = plots.maps("t", ["[CLS]", ""], ["k1", "k2", ""], weights, reading="r")
    tab = opened(show, plotted(made))
    shown = tab.locator(".side-map")
    assert "∅" not in shown.inner_text()
    assert shown.locator("td").count() == 2 and shown.locator("tbody tr").count() == 1


@pytest.mark.browser
def test_every_kind_is_drawn_with_its_title_and_reading(show):
    tab = opened(show, report())
    found = tab.locator("#attlas-trials figure.plot")
    assert found.count() == len(plots.KINDS)
    for place, plot in enumerate(trial_plots()):
        words = found.nth(place).inner_text()
        assert plot["title"] in words and plot["reading"] in words
    scatter = found.nth(0)
    assert scatter.locator("circle").count() == 59  # of 60, one is not known
    assert found.nth(1).locator(".line").count() == 2 + 2  # and in the key
    assert found.nth(1).locator(".spread").count() == 1
    assert found.nth(2).locator(".bar").count() == 3 and found.nth(2).locator("li").count() == 4
    # Of three groups one has no values; each other has an outline, a box, a whisker and a median.
    assert found.nth(3).locator(".spread").count() == found.nth(3).locator(".line").count() == 4
    assert found.nth(4).locator("td").count() == 72 and found.nth(4).locator("td.none").count() == 1
    assert found.nth(5).locator("table").count() == 2
    assert found.nth(6).locator("tbody tr").first.inner_text().split() == [
        "turns",
        "3",
        "12",
        "0.2",
    ]


@pytest.mark.browser
def test_a_point_is_where_its_numbers_are(show):
    made = plots.scatter("t", {"a": ([0, 1, 2], [0, 4, 2])}, x_label="x", y_label="y", reading="r")
    circles = opened(show, plotted(made)).locator(".plot circle")
    xs, ys = (
        circles.evaluate_all(f"all => all.map(each => parseFloat(each.getAttribute('{name}')))")
        for name in ("cx", "cy")
    )
    assert xs[1] - xs[0] == pytest.approx(xs[2] - xs[1], abs=0.2) and xs[1] > xs[0]
    assert ys[0] - ys[1] == pytest.approx(2 * (ys[0] - ys[2]), abs=0.2) and ys[1] < ys[0]


@pytest.mark.browser
def test_a_bar_starts_at_nothing_and_has_its_length(show):
    made = plots.bars("t", {"a": 2, "b": -1, "c": None}, x_label="x", reading="r")
    bars = opened(show, plotted(made)).locator(".plot-bars .bar")
    (left, width), (other_left, other_width) = bars.evaluate_all(
        "all => all.map(each => [each.style.left, each.style.width].map(parseFloat))"
    )
    assert width == pytest.approx(2 * other_width) and other_left + other_width == pytest.approx(
        left
    )


@pytest.mark.browser
def test_pointing_at_maps_tells_the_weight_in_each(show):
    weights = {"own": [[0.25, 0.75], [1, 0]], "other": [[0.5, 0.5], [0, 1]]}
    made = plots.maps("t", ["q1", "q2"], ["k1", "k2"], weights, reading="r")
    tab = opened(show, plotted(made))
    tab.locator(".side-map").nth(1).locator("td").nth(1).hover()
    assert tab.locator(".plot .told").inner_text() == "q1 → k2: own 0.75 · other 0.5"


@pytest.mark.browser
def test_plots_of_nothing_are_drawn_too(show):
    axes = {"x_label": "x", "y_label": "y", "reading": "r"}
    made = (
        plots.scatter("t", {"a": ([], [])}, **axes),
        plots.scatter("t", {}, **axes),
        plots.scatter("t", {"a": ([3, 3], [-1, -1])}, **axes),
        plots.curve("t", [1, 2], {"a": [None, None]}, **axes),
        plots.bars("t", {"a": None}, x_label="x", reading="r"),
        plots.bars("t", {"a": 0}, x_label="x", reading="r"),
        plots.matrix("t", [], [], [], **axes),
        plots.matrix("t", ["a"], ["b"], [[None]], **axes),
        plots.table("t", ["a"], [], reading="r"),
    )
    tab = opened(show, plotted(*made))
    assert tab.locator("figure.plot").count() == len(made)
    assert "NaN" not in tab.locator("#attlas-trials").inner_html()


@pytest.mark.browser
def test_hostile_words_are_only_text_on_a_page(show):
    tab = opened(show, hostile_trial())
    assert tab.locator("#view img").count() == 0
    assert tab.locator("#attlas-trials figcaption").first.inner_text() == SHOWN


@pytest.mark.browser
def test_a_phone_and_paper_hold_them_without_scrolling_sideways(show):
    tab = opened(show, report(), viewport={"width": 400, "height": 800})
    assert tab.evaluate("document.documentElement.scrollWidth") == 400
    for place in range(len(plots.KINDS)):
        assert tab.locator("figure.plot").nth(place).bounding_box()["width"] <= 400


@pytest.mark.browser
@pytest.mark.parametrize(
    "names", [["attention", "gradient"], [f"model {n}, 0.5 to 1" for n in "abc"]]
)
def test_the_names_below_violins_do_not_overlap(show, names):
    made = plots.violins(
        "t", {name: [1, 2, 2] for name in names}, x_label="x", y_label="y", reading="r"
    )
    tab = opened(show, plotted(made))
    shown = tab.locator(".plot svg > text[y='228']")
    assert shown.count() == len(names)
    boxes = [shown.nth(place).bounding_box() for place in range(len(names))]
    for one, other in pairwise(boxes):
        assert one["x"] + one["width"] < other["x"]
    listed = tab.locator(".violin-names li").all_text_contents()
    assert listed == ([] if len(names) == 2 else names)
