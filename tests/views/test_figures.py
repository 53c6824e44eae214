"""Static figures: every figure of every kind at a paper's size, and hostile tokens as text."""

import re
import subprocess
import sys
import warnings
from io import BytesIO
from xml.etree import ElementTree

import matplotlib
import numpy as np
import pytest
from matplotlib.axes import Axes
from matplotlib.backends.backend_agg import FigureCanvasAgg
from matplotlib.figure import Figure
from matplotlib.text import Text
from PIL import Image
from results import report_sample
from results.every_result import EVERY
from views import samples
from views.test_tree import tree

from attlas.errors import UnknownNameError, UsageError
from attlas.results.support import plots
from attlas.views import draw, figure_names
from attlas.views.figures import FIGURES
from attlas.views.kinds import VIEWS
from attlas.views.units import visible

figure_names("maps")  # fills the registry
WITHOUT = {"check"}  # kinds that are words alone
HOSTILE = [*samples.HOSTILE, "$\\alpha$", "$", "a_b^2", "100%", "\\textbf{x}", "#"]


def film_maps():
    film = samples.film()
    return {**film, "kind": "maps"}


PAYLOADS = {
    "explanation": samples.film,
    "generation": samples.generation,
    "heads": lambda: EVERY["PruneCurve"]().payload(),
    "judgement": lambda: EVERY["Judgement"]().payload(),
    "maps": film_maps,
    "redundancy": lambda: EVERY["HeadRedundancy"]().payload(),
    "report": lambda: report_sample.report().payload(),
    "study": lambda: EVERY["StudyResult"]().payload(),
    "tree": tree,
    "trial": lambda: EVERY["TrialResult"]().payload(),
    "triggers": lambda: EVERY["Triggers"]().payload(),
}


def payload_of(kind, name):
    return samples.photograph() if name == "picture" else PAYLOADS[kind]()


def saved(axes, ending):
    out = BytesIO()
    axes.figure.savefig(out, format=ending)
    return out.getvalue()


def svg_texts(axes):
    root = ElementTree.fromstring(saved(axes, "svg"))
    return [
        "".join(each.itertext()).strip() for each in root.iter("{http://www.w3.org/2000/svg}text")
    ]


@pytest.mark.parametrize(("kind", "name"), sorted(FIGURES), ids=lambda each: each)
def test_every_figure_is_drawn_at_the_size_of_a_column(kind, name):
    before = dict(matplotlib.rcParams)
    axes = draw(payload_of(kind, name), name)
    assert isinstance(axes, Axes)
    assert axes.figure.get_size_inches()[0] == pytest.approx(3.3)
    assert 0.2 < axes.figure.get_size_inches()[1] <= 9.5
    dots = np.asarray(Image.open(BytesIO(saved(axes, "png"))).convert("L"))
    assert dots.shape[1] == 990  # 300 dots in an inch
    assert (dots < 200).mean() > 0.002, "blank"
    sizes = [text.get_size() for text in axes.findobj(Text) if text.get_text()]
    assert not sizes or min(sizes) >= 7
    assert dict(matplotlib.rcParams) == before


@pytest.mark.parametrize(("kind", "name"), sorted(FIGURES), ids=lambda each: each)
def test_every_figure_is_drawn_into_the_axes_of_the_user(kind, name):
    axes = Figure((5, 4)).add_subplot()
    assert draw(payload_of(kind, name), name, axes) is axes
    assert len(axes.get_children()) > 10
    axes.figure.savefig(BytesIO(), format="png")


@pytest.mark.parametrize(("kind", "name"), sorted(FIGURES), ids=lambda each: each)
def test_no_word_leaves_the_paper(kind, name):
    axes = draw(payload_of(kind, name), name)
    canvas = FigureCanvasAgg(axes.figure)
    canvas.draw()
    box = axes.get_tightbbox(canvas.get_renderer())
    wide, high = axes.figure.bbox.size
    assert box.x0 >= -2 and box.y0 >= -2 and box.x1 <= wide + 2 and box.y1 <= high + 2, box


def test_every_kind_has_figures_and_one_of_them_is_usual():
    assert {kind for kind, _ in FIGURES} == set(PAYLOADS)
    assert set(PAYLOADS) | WITHOUT <= set(VIEWS)
    for kind in PAYLOADS:
        assert isinstance(draw(PAYLOADS[kind]()), Axes)
    assert svg_texts(draw(samples.photograph()))[0].startswith("attention_rollout, for")


def test_a_pdf_embeds_its_fonts_as_truetype_and_the_double_width_is_wider():
    axes = draw(samples.film(), width="double")
    assert axes.figure.get_size_inches()[0] == pytest.approx(6.8)
    content = saved(axes, "pdf")
    assert b"/FontFile2" in content and b"/Type3" not in content


@pytest.mark.parametrize("name", ["tokens", "bars", "matrix", "lines", "flow"])
def test_tokens_are_text_in_svg(name):
    shown = set(svg_texts(draw(samples.film(), name)))
    assert {"great", "away"} <= shown


@pytest.mark.parametrize("name", ["tokens", "bars", "matrix", "heads", "lines", "flow"])
def test_hostile_tokens_are_drawn_as_they_are(name):
    payload = samples.explanation(HOSTILE, maps=samples.maps(len(HOSTILE), layers=2, heads=2))
    options = {"count": 99} if name == "bars" else {}
    with warnings.catch_warnings():
        warnings.simplefilter("ignore")  # a sign that no font has
        axes = draw(payload, name, **options)
        shown = " ".join(svg_texts(axes))
        for ending in ("png", "pdf"):
            saved(axes, ending)
    if name in ("tokens", "bars"):
        for token in HOSTILE:
            assert visible(token).strip()[:18] in shown, token
    assert not re.search("[\x00-\x08\u202e]", shown)


def test_signs_that_no_font_has_are_told_once():
    payload = samples.explanation(["fine", "\U0001f9d1"])
    with pytest.warns(UserWarning, match="no font on this machine has \U0001f9d1") as told:
        axes = draw(payload)
        saved(axes, "png")
    assert len(told) == 1


def test_the_colour_of_a_word_is_that_of_the_page_on_white():
    axes = draw(samples.film())
    first = next(text for text in axes.texts if text.get_text() == "not")
    box = axes.patches[list(axes.texts).index(first)]
    assert [round(255 * each) for each in box.get_facecolor()[:3]] == [37, 99, 168]
    assert first.get_color() == "#ffffff"


def test_a_text_from_right_to_left_starts_at_the_right():
    axes = draw(samples.explanation(["שלום", "עולם"]))
    places = {text.get_text(): text.get_position()[0] for text in axes.texts}
    assert places["שלום"] > places["עולם"] > 1.6


def test_long_words_and_long_texts_are_wrapped():
    axes = draw(samples.explanation(["w" * 200, *["word"] * 40]))
    ends = [patch.get_x() + patch.get_width() for patch in axes.patches]
    assert max(ends) <= 3.3
    assert axes.figure.get_size_inches()[1] > 1


def test_the_matrix_has_the_weights_of_the_head():
    payload = samples.film()
    axes = draw(payload, "matrix", layer="encoder.1", head=2)
    shown = axes.images[0].get_array()
    strongest = np.asarray(shown).argmax(axis=1)
    assert list(strongest[:4]) == [(query * 7 + 1) % 14 for query in range(4)]
    mean = np.asarray(draw(payload, "matrix", layer=1).images[0].get_array())
    heads = [
        np.asarray(draw(payload, "matrix", layer=1, head=h).images[0].get_array()) for h in range(6)
    ]
    assert mean == pytest.approx(np.mean(heads, axis=0))


def test_what_flows_to_the_words_is_attention_rollout():
    from attlas.views.figures.flow import flows
    from attlas.views.figures.weights import all_sites

    sites = all_sites(samples.film())
    start = np.eye(14)[0]
    found = flows(sites, start, 0.5)
    joint = np.eye(14)
    for site in sites:
        mean = site.weights.mean(axis=0)
        joint = (0.5 * np.eye(14) + 0.5 * mean / mean.sum(axis=1, keepdims=True)) @ joint
    assert found[0].sum(axis=0) == pytest.approx(joint[0])
    assert all(each.sum() == pytest.approx(1) for each in found)


def test_the_curves_of_a_report_are_those_that_are_asked_for():
    payload = PAYLOADS["report"]()
    axes = draw(payload, "curves", measure="sufficiency", removal="mask", methods=["alti"])
    panel = next(
        p for p in payload["panels"] if (p["measure"], p["removal"]) == ("sufficiency", "mask")
    )
    line = next(each for each in panel["lines"] if each["method"] == "alti")
    assert list(axes.lines[0].get_ydata()) == pytest.approx(line["mean"])
    assert axes.get_title(loc="left") == "sufficiency, mask: less is better"


@pytest.mark.parametrize("number", range(6))
def test_every_plot_of_a_trial_is_drawn(number):
    axes = draw(PAYLOADS["report"](), "trial", plot=number)
    assert axes.get_title(loc="left")
    saved(axes, "png")


def test_a_wide_tree_lies_on_its_side():
    whole = tree()
    wide = {**whole["drawing"], "width": 2000.0}
    axes = draw({**whole, "drawing": wide})
    assert axes.get_xlabel() == "layer"
    assert {"thin", "plot", "witty"} <= set(svg_texts(axes))


@pytest.mark.parametrize(
    ("given", "problem"),
    [
        ({"name": "matix"}, "unknown figure of a explanation 'matix': did you mean 'matrix'"),
        ({"name": "matrix", "hed": 1}, "unknown option of the figure 'matrix' 'hed'.*layer, head"),
        ({"name": "matrix", "head": 9}, "no head 9 at encoder.3: it has heads 0 to 5"),
        ({"name": "matrix", "layer": 7}, "no layer 7"),
        ({"name": "matrix", "layer": "decoder.0"}, "unknown layer 'decoder.0'.*encoder.0"),
        ({"name": "flow", "token": 99}, "no token 99"),
        ({"name": "flow", "kind": "cross"}, "unknown kind of layer 'cross'"),
        ({"width": "triple"}, "width is single, double or inches"),
        ({"ax": "here"}, "ax takes axes of matplotlib, not str"),
        ({"name": "picture"}, "no picture 0"),
    ],
)
def test_what_cannot_be_drawn_is_told_with_what_can(given, problem):
    with pytest.raises(UsageError, match=problem):
        draw(samples.film(), **given)


def test_a_check_has_no_figure_and_no_maps_are_told():
    with pytest.raises(UsageError, match="there is no figure of a check"):
        EVERY["CheckResult"]().plot()
    with pytest.raises(UsageError, match="maps=True"):
        draw(samples.unsigned(), "matrix")
    with pytest.raises(UsageError, match="not both"):
        draw(samples.film(), ax=Figure().add_subplot(), width=3)
    with pytest.raises(UnknownNameError, match="methods"):
        report_sample.report().plot("metods")


def test_results_plot_and_show_themselves_in_a_notebook():
    axes = EVERY["Explanation"]().plot("matrix", layer=0, head=0)
    assert axes._repr_png_().startswith(b"\x89PNG")


CLEAN = """
import sys
from results.every_result import EVERY
assert "matplotlib" not in sys.modules
EVERY["Explanation"]().plot()
print("matplotlib.pyplot" in sys.modules)
"""


def test_matplotlib_comes_when_a_figure_is_drawn_and_pyplot_never():
    found = subprocess.run(
        [sys.executable, "-c", CLEAN], capture_output=True, text=True, check=True, cwd="tests"
    )
    assert found.stdout.strip() == "False"


def test_arrows_are_named_where_they_end():
    points = {"without": ([0.0], [0.0]), "with one": ([0.2], [0.1]), "with_two": ([-0.2], [0.1])}
    axes = {"x_label": "s", "y_label": "accuracy", "reading": "as it is"}
    plot = plots.scatter("moves", points, **axes, arrows_from="without")
    drawn = draw({"kind": "study", "name": "mine", "plots": [plot]})
    named = {each.get_text(): each for each in drawn.texts if each.get_text()}
    assert set(named) == {"with one", "with_two"}
    assert named["with one"].xy == (0.2, 0.1) and named["with one"].get_ha() == "right"
    assert named["with_two"].xy == (-0.2, 0.1) and named["with_two"].get_ha() == "left"
