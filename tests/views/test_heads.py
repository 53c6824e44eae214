"""The importance of heads in a terminal, in a notebook and on a page."""

import copy
import io
import itertools
import re

import pytest
from rich.console import Console

from attlas.views import area_cells, chart_cells, fragment, render

HOSTILE = "<img src=x onerror=alert(1)>"


def mean(value):
    return {"mean": value, "low": value - 0.05, "high": value + 0.05}


def curve(name, values, ahead):
    points = [
        {"place": place / 2, "heads": 2 * place, "accuracy": mean(value)}
        for place, value in enumerate(values)
    ]
    return {"name": name, "points": points, "area": mean(0.7), "ahead": ahead}


def head(site, number, importance, rank):
    return {
        "site": site,
        "head": number,
        "importance": importance,
        "low": importance - 0.1,
        "high": importance + 0.1,
        "rank": rank,
    }


def importance(by, values):
    order = sorted(range(4), key=lambda place: -values[place])
    cells = [
        head(f"encoder.{place // 2}", place % 2, value, order.index(place) + 1)
        for place, value in enumerate(values)
    ]
    sites = [{"name": f"encoder.{n}", "heads": cells[2 * n : 2 * n + 2]} for n in range(2)]
    return {"by": by, "reading": f"What {by} says.", "sites": sites}


HEADS = {
    "kind": "heads",
    "version": 1,
    "model": "sentiment",
    "task": "sequence classification",
    "method": "prune_curve",
    "signed": False,
    "paper": "arXiv:2004.11207",
    "reading": "Stay up long.",
    "options": {},
    "versions": {},
    "tokens": [],
    "importances": [
        importance("attattr", [0.5, 0.25, 0.125, 0.0]),
        importance("accuracy_difference", [-0.2, 0.1, 0.0, 0.4]),
    ],
    "charts": [
        {
            "axis": "share of all heads switched off",
            "labels": ["0 %", "50 %", "100 %"],
            "curves": [
                curve("attattr", [0.9, 0.85, 0.4], mean(0.1)),
                curve("random", [0.9, 0.55, 0.4], mean(0.0)),
            ],
        }
    ],
    "notes": ["Ranked on 20 texts."],
    "code": "import attlas",
}
ALONE = {**HEADS, "importances": HEADS["importances"][1:], "charts": []}
PAIRS = {
    **{key: HEADS[key] for key in HEADS if key not in ("importances", "charts")},
    "kind": "redundancy",
    "heads": ["encoder.0 0", "encoder.0 1", "cross.0 0"],
    "distances": [[0.0, 0.25, None], [0.25, 0.0, None], [None, None, 0.0]],
    "nearest": [{"one": "encoder.0 0", "other": "encoder.0 1", "distance": 0.25}],
}


def in_terminal(payload, width=80):
    console = Console(file=io.StringIO(), width=width, color_system=None)
    console.print(render(payload))
    return console.file.getvalue()


def test_curves_are_tables_of_per_cents():
    (chart,) = HEADS["charts"]
    assert chart_cells(chart)[1:] == [["attattr", "90", "85", "40"], ["random", "90", "55", "40"]]
    assert area_cells(chart)[1] == ["attattr", "70.0 (65.0 to 75.0)", "+10.0 (5.0 to 15.0)"]
    without = copy.deepcopy(chart)
    for each in without["curves"]:
        each["ahead"] = None
    assert area_cells(without)[0] == ["", "mean of the curve"]


def test_a_terminal_shows_curves_and_the_first_heads():
    shown = in_terminal(HEADS)
    assert all(len(line) <= 80 for line in shown.splitlines())
    assert ["attattr", "90", "85", "40"] in [line.split() for line in shown.splitlines()]
    assert "Ranked on 20 texts." in shown
    assert "layer 0 · head 0: 0.5 (0.4 to 0.6)" in shown and "Stay up long." in shown


def test_a_terminal_shows_one_ranking_as_a_grid_in_per_cent_of_the_largest():
    lines = in_terminal(ALONE).splitlines()
    grid = [
        line.split()
        for line in lines
        if line.startswith("head ") or (line.startswith("layer ") and ":" not in line)
    ]
    assert [row for row in grid if ":" not in row[1]] == [
        ["head", "0", "1"],
        ["layer", "0", "-50", "25"],
        ["layer", "1", "0", "100"],
    ]
    named = [line.split(":")[0] for line in lines if line.startswith("layer ") and ":" in line]
    assert named == [
        f"layer {layer} · head {head}" for layer, head in ((1, 1), (0, 1), (1, 0), (0, 0))
    ]


def test_a_terminal_shows_the_pairs_that_are_alike():
    rows = [line.split() for line in in_terminal(PAIRS).splitlines()]
    assert ["encoder.0", "·", "head", "0", "encoder.0", "·", "head", "1", "0.2500"] in rows


def test_a_notebook_has_the_grid_of_the_terminal():
    cells = re.findall("<td[^>]*>([^<]*)</td>", fragment(ALONE))
    assert cells == ["head", "0", "1", "layer 0", "-50", "25", "layer 1", "0", "100"]
    assert "in per cent of the largest" in fragment(ALONE)


@pytest.mark.parametrize("payload", [HEADS, ALONE, PAIRS])
def test_a_fragment_needs_no_script_and_obeys_nothing(payload):
    given = {**copy.deepcopy(payload), "model": HOSTILE, "notes": [HOSTILE]}
    for each in given.get("charts", ()):
        each["curves"][0]["name"] = HOSTILE
    made = fragment(given)
    assert "<img" not in made and "<script" not in made and "&lt;img" in made


@pytest.mark.browser
def test_on_a_phone_the_whole_curve_is_seen_in_letters_of_full_size(show):
    labels = [f"{10 * n} %" for n in range(11)]
    means = [0.9 - n / 20 for n in range(11)]
    (chart,) = HEADS["charts"]
    wide = {**chart, "labels": labels, "curves": [curve("attattr", means, mean(0.1))]}
    tab = show({**HEADS, "charts": [wide]}, viewport={"width": 390, "height": 844})
    boxes = tab.locator(".chart .scroll svg text:not(.side)").evaluate_all(
        "all => all.map((each) => each.getBoundingClientRect())"
    )
    *marks, _ = boxes  # the last one is the name of the axis
    assert len(marks) == 6  # every second one
    assert all(one["right"] < other["left"] for one, other in itertools.pairwise(marks))
    assert marks[-1]["right"] <= 390
    assert (
        tab.locator(".chart .scroll").first.evaluate("each => each.scrollWidth - each.clientWidth")
        == 0
    )


@pytest.mark.browser
def test_a_page_has_the_curves_and_the_heat_map(show):
    tab = show(HEADS)
    headings = tab.locator("h2").all_text_contents()
    assert headings == ["How to read this", "Accuracy as heads are switched off", "Heads", "Notes"]
    assert tab.locator(".chart .curve").count() == 2
    first = tab.locator(".chart .curve .line").first.get_attribute("d")
    places = [tuple(map(float, each.split())) for each in first[1:].split("L")]
    assert [x for x, _ in places] == [48.0, 376.0, 704.0]  # evenly from the left to the right
    heights = [y for _, y in places]
    assert heights == sorted(heights) and heights[2] == pytest.approx(12 + 260 * 0.6)
    tab.get_by_role("button", name="random").hover()
    assert (
        "random: mean accuracy 70.0 % (65.0 to 75.0), 0.0 %"
        in tab.locator(".chart .told").inner_text()
    )
    assert tab.locator(".chart table tr").nth(1).locator("td").all_text_contents()[:4] == [
        "attattr",
        "90",
        "85",
        "40",
    ]


@pytest.mark.browser
def test_the_ranking_can_be_chosen_and_each_head_looked_at(show):
    tab = show(HEADS)
    cells = tab.locator(".head-grid .cell")
    assert cells.all_text_contents() == ["100", "50", "25", "0"]  # the unit of the terminal
    assert tab.locator(".head-grid .number").all_text_contents() == ["0", "1"]
    tab.get_by_role("button", name="accuracy_difference").click()
    assert cells.all_text_contents() == ["−50", "25", "0", "100"]
    first = tab.locator(".first-heads li").first.locator("> .mono").all_text_contents()
    assert first == ["layer 1 · head 1", "0.400", "0.300 to 0.500"]  # three digits each
    told = tab.locator(".importance .told")
    assert told.inner_text().startswith("layer 1 · head 1: 0.4")
    cells.first.hover()
    assert told.inner_text() == (
        "layer 0 · head 0: −0.200 (95 % interval −0.300 to −0.100), number 4 of 4"
    )
    colours = cells.evaluate_all("all => all.map(each => each.style.backgroundColor)")
    assert len(set(colours)) == 4


@pytest.mark.browser
@pytest.mark.parametrize("payload", [HEADS, PAIRS])
def test_a_phone_scrolls_down_only(show, payload):
    tab = show(payload, viewport={"width": 390, "height": 844})
    assert tab.evaluate("document.documentElement.scrollWidth") == 390


@pytest.mark.browser
def test_hostile_names_are_text(show):
    given = copy.deepcopy(HEADS)
    given["charts"][0]["curves"][0]["name"] = HOSTILE
    given["charts"][0]["axis"] = given["charts"][0]["labels"][0] = HOSTILE
    given["importances"][0]["by"] = given["importances"][0]["reading"] = HOSTILE
    tab = show(given)
    assert tab.locator("#view img").count() == 0
    assert tab.locator(".key").first.inner_text().strip() == HOSTILE


@pytest.mark.browser
def test_pairs_are_drawn_and_named(show):
    tab = show(PAIRS)
    canvas = tab.locator(".redundancy canvas")
    box = canvas.bounding_box()
    assert tab.locator(".nearest").bounding_box()["x"] > box["x"] + box["width"]
    tab.mouse.move(box["x"] + box["width"] / 2, box["y"] + 2)
    assert tab.locator(".redundancy .told").inner_text() == (
        "encoder.0 · head 0 and encoder.0 · head 1: 0.2500 bits apart"
    )
    tab.mouse.move(box["x"] + box["width"] - 2, box["y"] + 2)
    assert "not compared" in tab.locator(".redundancy .told").inner_text()
    pixels = canvas.evaluate("each => [...each.getContext('2d').getImageData(0, 0, 3, 1).data]")
    assert len({tuple(pixels[start : start + 4]) for start in (0, 4, 8)}) == 3
