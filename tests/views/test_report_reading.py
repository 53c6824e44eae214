"""Finding one's way through a report: contents, addresses, folds, saved figures, paper."""

import csv
import io
import xml.etree.ElementTree as ElementTree

import pytest
from results.report_sample import report
from views.test_report import HOSTILE, hostile

pytestmark = pytest.mark.browser
SVG = "{http://www.w3.org/2000/svg}"


def saved(tab, figure, kind):
    """The text of a figure that a reader saves, and the name it has by itself."""
    box = tab.locator(f"#{figure}")
    box.evaluate(
        "each => { for (let at = each; at; at = at.parentElement)"
        " if (at.tagName === 'DETAILS') at.open = true; }"
    )
    with tab.expect_download() as download:
        box.locator(":scope > .tools").get_by_text(kind, exact=True).click()
    assert download.value.suggested_filename == f"{figure}.{kind.lower()}"
    return download.value.path().read_text("utf-8")


def rows_of(text):
    return list(csv.reader(io.StringIO(text)))


def same(cells, values):
    """Whether the cells of a line are these values; numbers as numbers."""
    for cell, value in zip(cells, values, strict=True):
        if isinstance(value, bool):
            assert cell == str(value).lower()
        elif isinstance(value, float):
            assert float(cell) == value
        else:
            assert cell == ("" if value is None else str(value))


def test_the_whole_report_folded_is_a_few_screens(show):
    tab = show(report().payload(), viewport={"width": 1280, "height": 800})
    assert tab.evaluate("document.documentElement.scrollHeight") < 2400
    phone = show(report().payload(), viewport={"width": 390, "height": 844})
    assert phone.evaluate("document.documentElement.scrollHeight") < 4000


def test_the_contents_stay_beside_the_text_and_lead_to_every_part(show):
    tab = show(report().payload(), viewport={"width": 1280, "height": 800})
    contents = tab.get_by_role("navigation", name="Contents")
    targets = contents.locator("a").evaluate_all("all => all.map(each => each.hash)")
    assert len(targets) == 16 and targets[0] == "#attlas-answer"
    assert all(tab.locator(each).count() == 1 for each in targets)
    before = contents.bounding_box()
    assert before["x"] + before["width"] <= tab.locator(".report-body").bounding_box()["x"]
    contents.get_by_role("link", name="All figures").click()
    tab.locator("#attlas-table table").wait_for(state="visible")
    assert tab.evaluate("scrollY") > 800
    assert contents.bounding_box()["y"] == pytest.approx(before["y"], abs=1)


def test_a_phone_folds_the_contents(show):
    tab = show(report().payload(), viewport={"width": 390, "height": 844})
    contents = tab.get_by_role("navigation", name="Contents")
    assert not contents.locator("a").first.is_visible()
    contents.locator("summary").click()
    contents.get_by_role("link", name="Examples").click()
    tab.locator("#attlas-examples .example").wait_for(state="visible")
    assert not contents.locator("a").first.is_visible()
    assert tab.locator("#attlas-answer").is_visible()


def test_the_answer_and_the_findings_are_on_the_first_screen_of_a_phone(show):
    tab = show(report().payload(), viewport={"width": 390, "height": 844})
    for name in ("answer", "findings"):
        box = tab.locator(f"#attlas-{name}").bounding_box()
        assert box["y"] + box["height"] <= 844


def test_an_address_opens_the_folds_around_a_figure(show):
    tab = show(report().payload())
    plot = tab.locator("#attlas-trial-permutation-plot-2")
    assert not plot.is_visible()
    tab.goto(f"{tab.url}#attlas-trial-permutation-plot-2")
    plot.wait_for(state="visible")
    box = plot.bounding_box()
    assert -1 <= box["y"] < 900
    assert plot.locator(".tools a").get_attribute("href") == "#attlas-trial-permutation-plot-2"


def test_every_figure_has_an_address_of_its_own(show):
    tab = show(report().payload())
    ids = tab.locator(".saveable").evaluate_all("all => all.map(each => each.id)")
    assert len(ids) == len(set(ids)) > 25 and all(each.startswith("attlas-") for each in ids)
    drawn = tab.locator(
        ".report-body :is(svg, table.grid, table.likeness, .standings)"
    ).evaluate_all(
        "all => all.filter(each => !each.closest('.saveable') && !each.closest('.key'))"
        ".map(each => each.outerHTML.slice(0, 80))"
    )
    assert drawn == []


def test_the_saved_table_is_the_table(show):
    tab = show(report().payload())
    head, *lines = rows_of(saved(tab, "attlas-table-figures", "CSV"))
    frame = report().to_pandas()
    frame = frame[frame["kind"] != "plausibility"]
    assert head == list(frame.columns) and len(lines) == len(frame)
    known = frame.astype(object).where(frame.notna(), None)
    for cells, values in zip(lines, known.to_numpy().tolist(), strict=True):
        same(cells, values)


def test_saved_numbers_are_those_of_the_payload(show):
    tab, made = show(report().payload()), report().payload()
    head, *lines = rows_of(saved(tab, "attlas-standing-methods", "CSV"))
    assert head == ["name", "family", "removal", "value", "low", "high", "texts"]
    for cells, each in zip(lines, made["standings"], strict=True):
        same(cells, [each["method"], each["family"], each["removal"], *each["figure"].values()])
    _, *lines = rows_of(saved(tab, "attlas-curves-sufficiency-mask", "CSV"))
    panel = next(
        each
        for each in made["panels"]
        if (each["measure"], each["removal"]) == ("sufficiency", "mask")
    )
    assert len(lines) == len(panel["lines"]) * len(panel["places"])
    first = panel["lines"][0]
    same(
        lines[1],
        [
            first["method"],
            first["family"],
            panel["places"][1],
            first["mean"][1],
            first["low"][1],
            first["high"][1],
        ],
    )
    plots = made["trials"][0]["plots"]
    place = [plot["kind"] for plot in plots].index("maps")
    _, *lines = rows_of(saved(tab, f"attlas-trial-permutation-plot-{place + 1}", "CSV"))
    maps = plots[place]["maps"]
    assert [float(line[3]) for line in lines] == [
        value for each in maps for row in each["values"] for value in row
    ]


@pytest.mark.parametrize(
    "figure",
    [
        "attlas-finding-1-plot",
        "attlas-standing-methods",
        "attlas-curves-comprehensiveness-delete",
        "attlas-agreement-methods",
        "attlas-verdict-groups",
        "attlas-trial-permutation-figures",
        "attlas-trial-permutation-plot-3",
        "attlas-example-1",
    ],
)
def test_a_saved_drawing_is_xml_with_what_is_seen(show, figure):
    tab = show(report().payload())
    drawing = ElementTree.fromstring(saved(tab, figure, "SVG"))
    assert drawing.tag == f"{SVG}svg" and float(drawing.get("width")) > 200
    told = "".join("".join(each.itertext()) for each in drawing.iter(f"{SVG}text"))
    box = tab.locator(f"#{figure}")
    seen = box.evaluate(
        "(each, unseen) => { const copy = each.cloneNode(true);"
        " copy.querySelectorAll(unseen).forEach(one => one.remove());"
        " return copy.textContent; }",
        ".tools, .told, title, button, details:not([open]) > :not(summary)",
    )
    assert "".join(told.split()) == "".join(seen.split())
    assert "var(" not in ElementTree.tostring(drawing, encoding="unicode")


def test_a_saved_interval_is_where_it_is_on_the_page(show):
    tab = show(report().payload())
    drawing = ElementTree.fromstring(saved(tab, "attlas-standing-methods", "SVG"))
    box = tab.locator("#attlas-standing-methods")
    frame = box.bounding_box()
    reach = box.locator(".reach").first.bounding_box()
    found = [
        each
        for each in drawing.iter(f"{SVG}rect")
        if float(each.get("x")) == pytest.approx(reach["x"] - frame["x"], abs=0.6)
        and float(each.get("y")) == pytest.approx(reach["y"] - frame["y"], abs=0.6)
    ]
    assert any(float(each.get("width")) == pytest.approx(reach["width"], abs=0.6) for each in found)


def test_hostile_words_are_saved_as_words(show):
    tab = show(hostile().payload())
    lines = rows_of(saved(tab, "attlas-example-1", "CSV"))
    assert [line[0] for line in lines[1:]] == [HOSTILE] * 9
    drawing = ElementTree.fromstring(saved(tab, "attlas-example-1", "SVG"))
    assert {each.tag.removeprefix(SVG) for each in drawing.iter()} <= {
        "svg",
        "rect",
        "line",
        "text",
    }


def test_paper_shows_all_that_is_folded_and_no_contents(show):
    tab = show(report().payload())
    tab.emulate_media(media="print")
    tab.locator("#attlas-trial-permutation-plot-1").wait_for(state="visible")
    assert tab.locator("details:not([open])").count() == 0
    assert (
        not tab.locator(".contents").is_visible() and not tab.locator(".tools").first.is_visible()
    )
    tab.emulate_media(media="screen")
    tab.locator("#attlas-trial-permutation-plot-1").wait_for(state="hidden")
    assert tab.locator("#attlas-finding-1").evaluate("each => each.open") is False


PORTRAIT, LANDSCAPE = 703, 1032  # the width of A4 less its margins


def test_no_table_is_cut_on_paper(show):
    tab = show(report().payload(), viewport={"width": PORTRAIT, "height": 1000})
    tab.emulate_media(media="print")
    tab.locator("#attlas-trial-permutation-plot-1").wait_for(state="visible")
    wide = tab.locator("table, svg, .standings, .flow").evaluate_all(
        "all => all.map(each => [Math.ceil(each.getBoundingClientRect().right),"
        " Boolean(each.closest('.part-table'))])"
    )
    assert max(right for right, is_turned in wide if not is_turned) <= PORTRAIT
    tab.set_viewport_size({"width": LANDSCAPE, "height": 700})  # the sheet of the large table
    right = tab.locator("#attlas-table table").evaluate(
        "each => each.getBoundingClientRect().right"
    )
    assert right <= LANDSCAPE
    pages = tab.pdf(prefer_css_page_size=True)
    assert pages.startswith(b"%PDF") and b"/MediaBox" in pages
