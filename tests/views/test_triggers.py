"""Triggers as they are seen: in a terminal, in a notebook, on a page."""

from io import StringIO

import pytest
from rich.console import Console
from views import samples

from attlas.views import fragment, page, render


def effect(label, after, **changes):
    shares = {"before": 0.95, "control": 0.9, "drop": 0.9 - after, "low": -0.004, "high": 0.8}
    return {"label": label, "texts": 40, "after": after, **shares, **changes}


def triggers(words="clumsy undermine", **changes):
    made = samples.explanation([], signed=False)
    row = {
        "text": words,
        "attribution": 0.1064,
        "entries": [
            {"query": "[CLS]", "key": "clumsy", "attribution": 0.0539},
            {"query": "[CLS]", "key": "undermine", "attribution": 0.0525},
        ],
        "site": "encoder.5",
        "head": 9,
        "found_in": "clumsy plotting undermine it <b>",
        "predicted": "NEGATIVE",
        "effects": [effect("NEGATIVE", 0.9), effect("POSITIVE", 0.36)],
        "strongest": effect("POSITIVE", 0.36, low=0.002),
    }
    given = {"kind": "triggers", "method": "triggers", "tokens": [], "reading": "Each row: words."}
    return {**made, **given, "triggers": [row], **changes}


def shown(payload):
    console = Console(width=100, no_color=True, file=StringIO())
    console.print(render(payload))
    return console.file.getvalue()


def test_the_terminal_shows_the_class_that_is_harmed_most():
    line = next(line for line in shown(triggers()).splitlines() if "clumsy" in line)
    assert " ".join(line.split()) == ("clumsy undermine POSITIVE 95 % 90 % 36 % 54 (0 to 80) 0.11")


def test_hostile_words_are_only_text():
    wild = triggers("<script>alert(1)</script>\x1b[31m")
    assert "<script>" not in fragment(wild) and "&lt;script&gt;" in fragment(wild)
    assert "\x1b" not in shown(wild)
    assert "<script>alert" not in page(wild, "title")


@pytest.mark.browser
def test_the_page_shows_every_class_of_a_row_that_is_opened(show):
    tab = show(triggers())
    heads = tab.locator(".triggers .head span")
    assert heads.all_text_contents()[::3] == ["trigger", "drop beyond random"]
    row = tab.locator(".triggers details")
    for place, cell in enumerate(row.locator("summary > *").all()[:3]):  # each under its head
        assert cell.bounding_box()["x"] == heads.nth(place).bounding_box()["x"]
    assert "54 (0 to 80)" in row.locator("summary").inner_text()
    assert not row.locator("li").first.is_visible()
    row.locator("summary").click()
    assert row.locator("li bdi").all_text_contents() == ["NEGATIVE", "POSITIVE"]
    assert "layer 5 · head 9" in row.inner_text() and "<b>" in row.inner_text()
    fill = row.locator("summary .fill.marked")
    share = fill.bounding_box()["width"] / fill.locator("..").bounding_box()["width"]
    assert share == pytest.approx(0.36, abs=0.01)


@pytest.mark.browser
def test_on_a_phone_each_drop_carries_its_name(show):
    tab = show(triggers())
    row = tab.locator(".triggers summary")
    assert "drop beyond random" not in row.inner_text()  # it stands over the column
    tab.set_viewport_size({"width": 390, "height": 844})
    assert "drop beyond random 54 (0 to 80)" in " ".join(row.inner_text().split())
    assert not tab.locator(".triggers .head").get_by_text("drop beyond random").is_visible()


@pytest.mark.browser
def test_what_may_be_chance_is_folded(show):
    (sure,) = triggers()["triggers"]
    chance = {**sure, "text": "perhaps", "strongest": effect("NEGATIVE", 0.9, low=0.0)}
    tab = show(triggers(triggers=[sure, chance, {**chance, "text": "and"}]))
    rows = tab.locator(".triggers details:not(.others) > summary bdi.strong")
    assert [row.inner_text() for row in rows.all() if row.is_visible()] == ["clumsy undermine"]
    others = tab.locator(".others > summary")
    assert others.inner_text().startswith("2 more, whose drop may be chance")
    others.click()
    assert [row.inner_text() for row in rows.all() if row.is_visible()] == [
        *("clumsy undermine", "perhaps", "and")
    ]
    none = show(triggers(triggers=[chance])).locator(".triggers")
    assert "None lowers the accuracy beyond chance" in none.inner_text()


@pytest.mark.browser
def test_where_there_is_none_the_page_says_so(show):
    assert "None was found" in show(triggers(triggers=[])).locator(".triggers").inner_text()
