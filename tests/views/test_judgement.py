"""A judgement as it is seen: in a terminal, in a notebook, on a page."""

from io import StringIO

import pytest
from rich.console import Console
from views import samples

from attlas.views import fragment, page, render

FIGURES = ("0.372", "0.230", "0.634", "0.35", "0.110")


def row(measure="comprehensiveness", **changes):
    figures = {"value": 0.3721, "shuffled": 0.2297, "ceiling": 0.6344, "share": 0.3518, "p": 0.11}
    plain = {"removal": "delete", "better": "higher", "kind": "faithfulness", "circular": False}
    words = {"note": "", "reading": "How far it falls."}
    return {"measure": measure, **figures, **plain, **words, **changes}


def nothing(measure, note):
    blank = dict.fromkeys(("value", "shuffled", "ceiling", "share", "p"))
    return row(measure, **blank, removal="", better="lower", note=note)


def judgement(*measured):
    made = samples.film()
    return {**made, "kind": "judgement", "maps": None, "measured": list(measured), "settings": {}}


def shown(payload, width=120):
    console = Console(width=width, no_color=True, file=StringIO())
    console.print(render(payload))
    return console.file.getvalue()


def test_a_chance_is_never_zero():
    assert "< .001" in shown(judgement(row(p=0.0002)))


def test_the_terminal_has_a_line_for_each_measure():
    given = judgement(row(), nothing("sensitivity", "not applicable"), row(circular=True))
    lines = [" ".join(line.split()) for line in shown(given).splitlines()]
    told = "↑ comprehensiveness delete 0.372 0.230 0.634 0.35 0.110"
    assert told in lines
    below = told.removeprefix("↑ comprehensiveness ")
    assert "comprehensiveness (delete): circular: computed by what the measure does" in lines
    again = [" ".join(line.split()) for line in shown(judgement(row(), row())).splitlines()]
    assert [line for line in again if line.endswith(below)] == [told, below]  # it is named once
    assert "↓ sensitivity" in lines and "sensitivity: not applicable" in lines
    assert "∅" not in shown(given)


def test_a_terminal_of_80_columns_breaks_no_name():
    names = ("comprehensiveness", "tau_leave_one_out", "counterfactual_flip")
    given = judgement(*(row(name, removal="zero_embedding", circular=True) for name in names))
    lines = shown(given, 80).splitlines()
    for name in names:
        (line,) = [each for each in lines if each.startswith(f"↑ {name}")]
        assert line.split() == ["↑", name, "zero_embedding", *FIGURES]


def test_the_terminal_says_first_how_often_the_scores_are_surely_better():
    given = judgement(row(p=0.049), row(p=0.05), row(p=0.001), nothing("sensitivity", "none"))
    assert shown(given).splitlines()[1] == (
        "2 of 3 figures are surely better than those of shuffled scores (p < 0.05)."
    )


def test_hostile_words_are_only_text():
    wild = judgement(row("<script>alert(1)</script>\x1b[31m", note="<i>", reading='"><img>'))
    assert "<script>" not in fragment(wild) and "&lt;script&gt;" in fragment(wild)
    assert "<img>" not in fragment(wild) and "<i>" not in fragment(wild)
    assert "\x1b" not in shown(wild)
    assert "<script>alert" not in page(wild, "title")


@pytest.mark.browser
def test_the_page_shows_every_figure(show):
    tab = show(judgement(row(value=-0.25), nothing("sensitivity", "not <applicable>")))
    lines = tab.locator(".judgement tbody tr")
    cells = lines.first.locator("th, td").all_text_contents()
    assert cells == [
        "↑ comprehensiveness", "delete", "−0.250", "0.230", "0.634", "0.35", "0.110", ""
    ]  # fmt: skip
    assert "not <applicable>" in lines.nth(1).inner_text()
    headings = tab.locator("h2").all_text_contents()
    assert headings.index("Text") < headings.index("Measures")


@pytest.mark.browser
def test_beside_the_figures_the_page_says_once_what_each_measure_asks(show):
    tab = show(judgement(row(), row(removal="mask"), row("location", reading="How soon?")))
    assert tab.locator(".asks dt").all_text_contents() == ["comprehensiveness", "location"]
    assert tab.locator(".asks dd").all_text_contents() == ["How far it falls.", "How soon?"]
    table, asks = (tab.locator(each).bounding_box() for each in (".judgement table", ".asks"))
    assert asks["x"] > table["x"] + table["width"] and asks["x"] + asks["width"] > 1200
