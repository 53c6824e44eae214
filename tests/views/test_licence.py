"""The licence of a heat map as it is seen: in a terminal, in a notebook, on a page."""

from io import StringIO

import pytest
from rich.console import Console
from views import samples

from attlas.views import fragment, render

ROW = {
    "removal": "delete",
    "word": "may be read as where",
    "capture": 0.3,
    "best": 0.4,
    "share": 0.754,
    "p": 0.0004,
    "reliability": 0.923,
    "right_way": 0.9,
    "for_target": 0.834,
    "enough": [3],
    "needed": [1, 3],
}
OTHER = {**ROW, "removal": "mask", "share": -0.12, "p": 0.25, "enough": [], "needed": None}
OTHER |= {"right_way": None, "reliability": None}
CELLS = ["delete", "75 %", "< .001", "0.92", "90 % (83 %)", "great", "not · great"]
OTHER_CELLS = ["mask", "−12 %", "0.250", "", "", "nothing", "none found"]


def licensed(kind="explanation", **changes):
    licence = {"word": ROW["word"], "why": "They <are> there.", "signed": False, "exact": False}
    made = {**samples.film(), "licence": {**licence, "removals": [ROW, OTHER], **changes}}
    return {**made, "kind": kind, "measured": [], "settings": {}}


def shown(payload):
    console = Console(width=140, no_color=True, file=StringIO())
    console.print(render(payload))
    return console.file.getvalue()


@pytest.mark.parametrize("kind", ["explanation", "judgement"])
def test_the_terminal_says_the_word_why_and_a_row_for_each_removal(kind):
    lines = [" ".join(line.split()) for line in shown(licensed(kind)).splitlines()]
    assert "May be read as where. They <are> there." in lines
    assert " ".join(CELLS) in lines
    assert " ".join(each for each in OTHER_CELLS if each) in lines
    assert "highlighted speaks for the target" in " ".join(lines)
    assert "has the right sign" in " ".join(shown(licensed(kind, signed=True)).split())


@pytest.mark.parametrize("kind", ["explanation", "judgement"])
def test_the_notebook_says_the_same(kind):
    html = fragment(licensed(kind))
    assert "<b>May be read as where.</b> They &lt;are&gt; there." in html
    for cell in ("75 %", "&lt; .001", "90 % (83 %)", "not · great", "none found", "nothing"):
        assert f">{cell}</td>" in html


def test_without_a_licence_nothing_is_said():
    made = {**samples.film(), "licence": None}
    assert shown(made) == shown(samples.film()) and fragment(made) == fragment(samples.film())


@pytest.mark.browser
@pytest.mark.parametrize("kind", ["explanation", "judgement"])
def test_the_page_says_the_same(show, kind):
    tab = show(licensed(kind))
    box = tab.locator(".licence")
    assert box.locator("p").first.text_content() == "May be read as where. They <are> there."
    rows = box.locator("tbody tr")
    assert rows.first.locator("th, td").all_text_contents() == CELLS
    assert rows.nth(1).locator("th, td").all_text_contents() == OTHER_CELLS


@pytest.mark.browser
def test_a_page_without_a_licence_has_no_box(show):
    assert show({**samples.film(), "licence": None}).locator(".licence").count() == 0
