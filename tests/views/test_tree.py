"""A tree as it is seen: in a terminal, as SVG, as a file, on a page."""

import re
import sys
from io import StringIO
from itertools import pairwise
from xml.etree import ElementTree

import pytest
from rich.console import Console
from views import samples

from attlas.errors import UsageError
from attlas.views import fragment, lay_out_tree, page, render, tree_figure
from attlas.views.tree_drawing import BOX

SVG = "{http://www.w3.org/2000/svg}"


def tree(pieces=("[CLS]", "thin", "plot", "witty", "play"), **changes):
    """[CLS] reads `witty` and `plot`, and `plot` reads `thin`; the last two are another text."""
    made = samples.explanation(list(pieces), signed=False)
    segments = ["text_a"] * 3 + ["text_b"] * (len(pieces) - 3)
    for row, segment in zip(made["tokens"], segments, strict=True):
        row["segment"] = segment
    made["tokens"][0]["special"] = True
    edges = [(2, 0, 3, 0.5), (1, 0, 2, 0.25), (0, 2, 1, 0.125)]
    names = ("layer", "parent", "child", "attribution")
    nodes = {0: 3, 3: 2, 2: 1, 1: 0}
    return {
        **made,
        "kind": "tree",
        "method": "attribution_tree",
        "words": None,
        "root": 0,
        "layers": 3,
        "edges": [dict(zip(names, edge, strict=True)) for edge in edges],
        "share": 0.42,
        "drawing": lay_out_tree(made["tokens"], nodes),
        **changes,
    }


def shown(payload):
    console = Console(width=80, no_color=True, file=StringIO())
    console.print(render(payload))
    return console.file.getvalue()


def test_tokens_that_occur_twice_carry_their_place():
    twice = tree(("[CLS]", "thin", "plot", "thin", "play"))
    assert "thin (2nd)  0.500" in shown(twice) and "thin (1st)  0.125" in shown(twice)
    labels = [box["label"] for box in twice["drawing"]["boxes"]]
    assert sorted(labels) == ["[CLS]", "plot", "thin 1st", "thin 2nd"]


def test_the_terminal_shows_each_edge_under_the_token_that_reads():
    lines = shown(tree()).splitlines()
    start = lines.index("[CLS]")
    assert [line.split() for line in lines[start + 1 : start + 4]] == [
        ["├──", "witty", "0.500", "layer", "2"],
        ["└──", "plot", "0.250", "layer", "1"],
        ["└──", "thin", "0.125", "layer", "0"],
    ]
    assert "3 edges: 42 % of the positive attribution" in shown(tree())
    assert "text_a" in shown(tree()) and "text_b" in shown(tree())


@pytest.mark.parametrize("count", [6, 40])
def test_boxes_of_a_layer_do_not_touch_and_stand_as_in_the_text(count):
    pieces = ("root", *("word" * (1 + place % 4) for place in range(40)))
    tokens = [samples.token(text, 0.0) for text in pieces]
    nodes = {0: 9, **{place: 1 + place % 2 for place in range(1, count + 1)}}
    drawing = lay_out_tree(tokens, nodes)
    boxes = [box for box in drawing["boxes"] if box["position"]]
    assert [box["x"] for box in boxes] == sorted(box["x"] for box in boxes)
    together = [(1, 2)] if count == 6 else [(1,), (2,)]  # of few boxes, no two overlap at all
    for layers in together:
        row = [box for box in boxes if box["layer"] in layers]
        for one, other in pairwise(row):
            assert one["x"] + one["width"] / 2 < other["x"] - other["width"] / 2
    heights = [row["y"] for row in drawing["layers"]]
    assert [row["layer"] for row in drawing["layers"]] == [9, 2, 1] and heights == sorted(heights)
    for box in drawing["boxes"]:
        assert box["width"] / 2 <= box["x"] <= drawing["width"] - box["width"] / 2
        assert BOX / 2 <= box["y"] <= drawing["height"] - BOX / 2


def test_a_root_alone_can_be_drawn():
    alone = tree(edges=[], drawing=lay_out_tree(tree()["tokens"], {0: 3}))
    assert "0 edges" in shown(alone)
    ElementTree.fromstring(tree_figure(alone, ".svg"))


def test_the_drawing_has_a_box_for_each_token_and_a_line_for_each_edge():
    root = ElementTree.fromstring(tree_figure(tree(), ".svg"))
    assert len(root.findall(f"{SVG}path")) == 3
    texts = [each.text for each in root.findall(f"{SVG}text")]
    assert texts == ["layer 2", "layer 1", "layer 0", "[CLS]", "thin", "plot", "witty"]
    widths = [float(each.get("stroke-width")) for each in root.findall(f"{SVG}path")]
    assert widths == sorted(widths, reverse=True)


def test_two_texts_have_two_colours():
    root = ElementTree.fromstring(tree_figure(tree(), ".svg"))
    cls, thin, plot, witty = (each.get("stroke") for each in root.findall(f"{SVG}rect")[1:])
    assert thin == plot and len({cls, thin, witty}) == 3


def test_hostile_tokens_are_only_text():
    given = tree(("</svg><script>", "<b>", "&amp;", '"x"\x1b', "\u202e"))
    root = ElementTree.fromstring(tree_figure(given, ".svg"))
    assert {each.tag for each in root.iter()} <= {
        f"{SVG}{name}" for name in ("svg", "rect", "text", "path", "title")
    }
    assert "<script>" not in fragment(given)
    assert "\x1b" not in shown(given)


@pytest.mark.parametrize(("ending", "sign"), [(".png", b"\x89PNG"), (".pdf", b"%PDF")])
def test_other_files_are_drawn_by_matplotlib(ending, sign):
    pytest.importorskip("matplotlib")
    assert tree_figure(tree(("$x_1", "^", "plot", "w", "p")), ending).startswith(sign)


def test_without_matplotlib_the_message_says_what_to_do(monkeypatch):
    monkeypatch.setitem(sys.modules, "matplotlib.figure", None)
    with pytest.raises(UsageError, match=r"figures.*svg needs nothing"):
        tree_figure(tree(), ".png")
    with pytest.raises(UsageError, match=r"ends in \.svg, \.png, \.pdf, not '\.gif'"):
        tree_figure(tree(), ".gif")


def test_nothing_on_the_page_is_loaded():
    assert not re.search(r"https?://", page(tree(), "title"))


@pytest.mark.browser
def test_the_page_draws_the_tree_and_traces_a_token_to_the_root(show):
    tab = show(tree())
    assert tab.locator(".tree .node text").all_text_contents() == ["[CLS]", "thin", "plot", "witty"]
    assert tab.locator(".tree path").count() == 3
    assert tab.locator(".tree .node.second text").all_text_contents() == ["witty"]
    assert tab.locator(".tree .told").inner_text().startswith("3 edges, thicker for more: 42 %")
    tab.locator(".tree .node", has_text="thin").hover()
    assert tab.locator(".tree .node.traced text").all_text_contents() == ["[CLS]", "thin", "plot"]
    assert tab.locator(".tree path.traced").count() == 2
    assert tab.locator(".tree .told").inner_text() == (
        "[CLS] reads plot in layer 1, 0.250 reads thin in layer 0, 0.125"
    )
    tab.locator("h1").hover()
    assert tab.locator(".tree .traced").count() == 0


@pytest.mark.browser
def test_the_keyboard_reaches_the_tokens_of_the_tree(show):
    tab = show(tree())
    tab.locator(".tree .node").first.focus()
    tab.keyboard.press("ArrowRight")
    assert tab.locator(".tree .told").inner_text().endswith("thin in layer 0, 0.125")


@pytest.mark.browser
def test_a_hostile_tree_is_drawn_as_text(show):
    tab = show(tree(("</svg><script>", "<b>", "&amp;", '"x"\x1b', "\u202e")))
    assert tab.locator(".tree .node text").all_text_contents()[1] == "<b>"


@pytest.mark.browser
def test_letters_of_a_wide_tree_are_large_enough_on_a_phone(show):
    made = show(tree(tuple(f"word {n}" for n in range(40))), viewport={"width": 390, "height": 844})
    sizes = made.locator(".tree text").evaluate_all(
        "all => all.map((each) => each.getScreenCTM().a * "
        "parseFloat(getComputedStyle(each).fontSize))"
    )
    assert min(sizes) > 9.5
    assert made.evaluate("document.documentElement.scrollWidth") == 390
