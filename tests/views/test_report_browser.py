"""A report on a page: what is seen first, what is drawn where, and what is only text."""

from dataclasses import replace

import pytest
from results.report_sample import findings, report, sample
from views.test_report import bare, hostile

from attlas.results.support.report_sections import SECTIONS

pytestmark = pytest.mark.browser


@pytest.fixture(scope="module")
def tab(browser, tmp_path_factory):
    """The whole report, opened once for all who only look at it."""
    path = report().to_html(tmp_path_factory.mktemp("report") / "report.html")
    opened = browser.new_page(viewport={"width": 1280, "height": 900})
    opened.goto(path.as_uri())
    opened.wait_for_selector("footer")
    first = "#attlas-findings, #attlas-more-findings"
    opened.evaluate(
        "first => document.querySelectorAll('details').forEach(each => {"
        " if (!each.closest(first)) each.open = true; })",
        first,
    )
    yield opened
    opened.close()


def test_the_first_screen_has_the_answer_three_findings_a_text_and_what_to_do(tab):
    assert tab.locator("h1").inner_text() == "May attention be read as an explanation here?"
    assert tab.locator(".verdict-word").inner_text().split() == ["✕No", "not", "supported"]
    assert tab.locator(".plain-answer").inner_text() == report().verdict.plain[4:]
    titles = tab.locator("#attlas-findings .said").all_text_contents()
    assert titles == [each.title for each in findings()[:3]]
    steps = tab.locator(".next li > span:first-child").all_text_contents()
    assert steps == [
        "Do not show heat maps of the weights alone.",
        "Use gradient instead, which finds more: ",
        "To see whether a map of the weights holds for one text: ",
    ]
    assert tab.locator(".next pre").all_text_contents() == [
        "attlas explain --method gradient TEXT",
        "attlas explain --licence --method raw_attention TEXT",
    ]
    example = tab.locator(".first-example")
    assert "The comma is attended to; the verb decides." in example.locator("h2").inner_text()
    for part in (example, tab.locator(".next")):
        box = part.bounding_box()
        assert box["y"] + box["height"] < 800


def test_an_option_to_type_is_never_broken_after_its_hyphens(tab):
    options = tab.locator(".next pre .option")
    assert options.all_text_contents() == ["--method", "--licence", "--method"]
    lines = "(each) => each.getClientRects().length"
    for width in range(120, 200, 5):
        tab.evaluate(
            "(wide) => document.querySelectorAll('.next pre').forEach("
            "(each) => { each.style.width = `${wide}px`; })",
            width,
        )
        assert [options.nth(place).evaluate(lines) for place in range(3)] == [1, 1, 1]
    tab.evaluate("document.querySelectorAll('.next pre').forEach(e => { e.style.width = ''; })")


def test_how_to_read_it_stands_first_and_is_short(tab):
    guide, answer = tab.locator(".reading-guide"), tab.locator("#attlas-answer")
    assert guide.bounding_box()["y"] < answer.bounding_box()["y"]
    assert guide.bounding_box()["height"] < 60


def test_a_report_without_everyday_words_says_its_verdict(show):
    tab = show(report(verdict=replace(report().verdict, plain="")).payload())
    assert tab.locator(".verdict-word").inner_text().split() == ["✕Not", "supported"]
    assert tab.locator(".plain-answer").inner_text() == (
        "The attention weights do not show where the prediction rests."
    )


def test_the_text_of_the_first_screen_shows_the_weights_beside_what_matters(tab):
    rows = tab.locator(".first-example .map-row")
    assert rows.count() == 2
    for place in range(2):
        text = rows.nth(place).locator(".flow").inner_text()
        assert text == "a clumsy, overwrought film that nevertheless works"
    titles = rows.nth(1).locator(".unit").evaluate_all("all => all.map(each => each.title)")
    assert titles[3] == "−0.18"  # two tokens of one word
    assert titles[:2] == ["+0.01", "−0.25"] and titles[7] == "+0.5"
    assert rows.nth(1).locator(".against").all_text_contents() == ["clumsy", "overwrought"]
    assert "orange speaks for POSITIVE" in rows.nth(1).inner_text()
    licence, facts = tab.locator(".first-example > p").all_inner_texts()
    assert licence.startswith(
        "On this text the map may mislead: its strongest words are not surely"
    )
    assert "The model says POSITIVE 0.87" in facts and "find 0.31 of what matters" in facts


def test_findings_have_a_figure_with_its_interval_and_texts(tab):
    lines = tab.locator(".finding")
    assert lines.count() == 5
    assert lines.first.locator(".figures").inner_text() == "0.24 0.17 to 0.31"
    assert lines.nth(1).locator(".figures").inner_text() == "−0.47 −0.56 to −0.38"
    assert lines.first.locator(".count").inner_text() == "200 texts"
    assert "not counted in the answer" in tab.locator(".more-findings .apart").inner_text()


def test_an_answer_without_a_reference_has_a_sign_of_its_own(show):
    made = report().verdict
    alone = {name: replace(each, less_reference=None) for name, each in made.bounds.items()}
    verdict = replace(made, word="too few texts", bounds=alone, texts_needed=80)
    tab = show(report(verdict=verdict).payload())
    assert tab.locator(".verdict-mark").inner_text() == "?"
    assert tab.locator("#attlas-verdict .bounds .who").all_text_contents() == [
        "Wraw_attention",
        "more than another text's raw_attention",
        "Wraw_attention",
        "more than position",
    ]


def test_the_evidence_is_drawn_with_its_thresholds(tab):
    section = tab.locator("#attlas-verdict")
    words = " ".join(section.text_content().split())
    assert report().verdict.sentence in words and report().verdict.which_way in words
    assert "delete speaks against them: they find at most 29 % of what matters" in words
    assert "moves the answer by 0.12 (0.09 to 0.15) (0.02 is the least" in words
    assert "of the 400 texts" in words and "80 % of the splits give this word" in words
    marks = section.locator(".bounds .at").evaluate_all(
        "all => all.map(each => parseFloat(each.style.left.slice(5)))"
    )
    assert marks[:3] == pytest.approx([65, 50, 45])  # 0.3, 0 and −0.1, from −1 to 1


def test_the_grid_has_the_word_for_each_threshold_and_marks_the_ones_asked(tab):
    grid = tab.locator("#attlas-verdict table.words")
    heads = grid.locator("thead th").all_text_contents()
    assert heads == ["floor", "margin 0.05", "margin 0.1", "margin 0.15"]
    rows = [row.locator("td").all_text_contents() for row in grid.locator("tbody tr").all()]
    assert rows == [["◐ partly"] * 3, ["✕ not supported"] * 3]
    assert grid.locator(".chosen").count() == 1
    groups = tab.locator("#attlas-verdict table.mono tbody tr").all_text_contents()
    assert groups == [
        "predicted NEGATIVE1800.20 (0.10 to 0.30)120.22 (0.12 to 0.32)0",
        "predicted POSITIVE2200.27 (0.17 to 0.37)0––",
    ]


def test_a_finding_opens_with_its_plot_a_text_and_what_it_does_not_show(show):
    tab = show(report().payload())
    first = tab.locator("#attlas-finding-1")
    body = first.locator(".finding-body")
    assert not body.is_visible()
    first.locator("summary").focus()
    tab.keyboard.press("Enter")
    assert body.is_visible()
    finding = findings()[0]
    words = body.inner_text()
    assert finding.sentence in words and finding.does_not_show in words
    assert body.locator(".standings .control .who bdi").all_text_contents() == ["position"]
    assert body.locator(".standings .asked .who bdi").all_text_contents() == ["raw_attention"]
    assert body.locator(".map-row .flow").count() == 2
    body.get_by_role("link", name="All about it").click()
    tab.locator("#attlas-standing-methods").wait_for(state="visible")
    assert tab.url.endswith("#attlas-standing")


def test_a_finding_on_another_reading_of_the_weights_has_no_text_of_this_one(show):
    payload = report().payload()
    shown = payload["examples"][0]["readings"][0]["method"]
    other = {**payload["standings"][0], "method": "another_reading", "family": "W"}
    payload["standings"].append(other)
    payload["findings"][0]["sentence"] = "The weights (another_reading) find less."
    payload["findings"][1]["sentence"] = f"The weights ({shown}) find more."
    tab = show(payload)
    flows = [tab.locator(f"#attlas-finding-{n} .map-row .flow").count() for n in (1, 2)]
    assert flows == [0, 2]


def test_the_plot_of_a_finding_has_the_method_that_it_names(show):
    payload = report().payload()
    other = next(each["method"] for each in payload["standings"] if each["family"] == "P")
    payload["findings"][0]["sentence"] = f"Another one ({other}) finds more."
    tab = show(payload)
    plots = [tab.locator(f"#attlas-finding-{n} .standings .who bdi") for n in (1, 2)]
    assert other in plots[0].all_text_contents()
    assert other not in plots[1].all_text_contents()


def test_findings_and_their_sections_say_what_is_not_shown(tab):
    targets = tab.locator(".finding .onward a").evaluate_all("all => all.map(each => each.hash)")
    expected = [each.section for each in (*findings(), report().plausibility)]
    assert targets == [f"#attlas-{name}" for name in expected]
    for name, finding in zip(expected, (*findings(), report().plausibility), strict=True):
        words = tab.locator(f"#attlas-{name}").text_content()
        assert finding.sentence in words and finding.does_not_show in words


def test_the_sections_are_those_that_findings_may_name(tab):
    ids = tab.locator("details.part[id]").evaluate_all("all => all.map(each => each.id)")
    assert ids == [f"attlas-{name}" for name in SECTIONS]


def test_an_interval_is_where_its_figures_are(tab):
    track = tab.locator(".finding-line .interval-track").nth(1)  # from -1 to 1
    style = "(each) => [each.style.left, each.style.width].map(parseFloat)"
    assert track.locator(".reach").evaluate(style) == pytest.approx([22, 9])
    assert track.locator(".dot").evaluate("each => parseFloat(each.style.left)") == 26.5
    whole, dot = track.bounding_box(), track.locator(".dot").bounding_box()
    middle = (dot["x"] + dot["width"] / 2 - whole["x"]) / whole["width"]
    assert middle == pytest.approx(0.265, abs=0.005)


def test_methods_are_drawn_from_the_highest_down(tab):
    lines = tab.locator("#attlas-standing li:not(.axis-row)")
    assert lines.count() == 19
    names = lines.locator(".who bdi").all_text_contents()
    assert names[:2] == ["kernel_shap", "leave_one_out"] and names[-1] == "position"
    assert lines.first.locator(".dot").count() == 3
    assert tab.locator("#attlas-standing .asked bdi").all_text_contents() == ["raw_attention"]


def test_the_figures_of_a_removal_stand_below_its_mark(show):
    made = report()
    one, other = (made.standings[0].method, made.standings[0].removal)
    without = [each for each in made.standings if (each.method, each.removal) != (one, other)]
    page = show(replace(made, standings=tuple(without)).payload())
    assert page.locator("#attlas-standing .axis-row .figure").text_content().split()[0] == "●"
    lines = page.locator("#attlas-standing li:not(.axis-row)")
    shown = {
        line.locator(".who bdi").text_content(): line.locator(".figure").text_content()
        for line in lines.all()
    }
    assert len({len(figures) for figures in shown.values()}) == 1
    assert [name for name, figures in shown.items() if "–" in figures] == [one]
    assert shown[one].split()[0] == "–"


def test_a_curve_goes_through_its_points(tab):
    made = report()
    assert tab.locator(".panel").count() == 6
    first = tab.locator(".panel").first
    assert first.locator(".curve").count() == 21
    path = first.locator(".curve", has_text="alti").locator(".line").get_attribute("d")
    places = [tuple(map(float, each.split())) for each in path[1:].split("L")]
    assert places[-1][0] == 312.0  # the right edge of 320, less 8
    line = next(each for each in made.panels[0].lines if each.method == "alti")
    heights = [y for _, y in places]
    slope = (heights[0] - heights[-1]) / (line.mean[-1] - line.mean[0])
    for height, value in zip(heights, line.mean, strict=True):
        assert heights[0] - height == pytest.approx(slope * (value - line.mean[0]), abs=0.2)


def test_a_hole_in_a_curve_is_left_out(show):
    panel = report().panels[0]
    mean = (float("nan"), *panel.lines[0].mean[1:])
    made = report(panels=(replace(panel, lines=(replace(panel.lines[0], mean=mean),)),))
    path = show(made.payload()).locator(".panel .line").get_attribute("d")
    assert len(path.split("L")) == 18 and "NaN" not in path


def test_pointing_at_a_method_lights_it_in_all_charts(tab):
    tab.get_by_role("button", name="globenc").hover()
    assert tab.locator(".panel .lit").count() == 6
    assert tab.locator("#attlas-curves .told").inner_text().startswith("globenc, mean of the curve")


def test_the_table_marks_what_is_significantly_best(tab):
    grid = tab.locator("#attlas-table table")
    heads = grid.locator("thead tr").first.locator("th").all_text_contents()
    assert heads[1:3] == ["↑ comprehensiveness", "↓ sufficiency"]
    spans = (
        grid.locator("thead tr")
        .first.locator("th")
        .evaluate_all("all => all.map(each => each.colSpan)")
    )
    assert spans == [1, 3, 3, 3, 3, 3]
    rows = grid.locator("tbody tr")
    assert rows.count() == 21
    best = grid.locator("td.best")
    assert best.count() == 10 and all("★" in words for words in best.all_text_contents())
    assert grid.locator("td:not(.best)", has_text="★").count() == 0
    assert grid.locator("tr.control bdi").all_text_contents() == ["shuffled", "position", "ceiling"]
    circular = grid.locator("td[title=circular]")
    assert circular.count() == 3 and circular.first.inner_text() == "–c"
    assert tab.locator("#attlas-table .notes-key > span").all_text_contents() == [
        "c circular",
        "? not applicable: no search for this measure",
    ]


def test_the_cell_tells_its_interval_its_texts_and_its_p(tab):
    made = report()
    cell = made.table.rows[0].cells[0]
    told = tab.locator("#attlas-table tbody td").first.get_attribute("title")
    low, high = cell.figure.low, cell.figure.high
    assert told == f"{cell.figure.value:.2f} ({low:.2f} to {high:.2f}), 400 texts, p 0.210"


def test_plausibility_stands_apart(tab):
    heads = tab.locator("#attlas-plausibility thead tr").first.inner_text()
    assert "token_f1" in heads and "auprc" in heads
    assert "auprc" not in tab.locator("#attlas-table").inner_text()


def test_agreement_can_be_chosen(tab):
    cell = tab.locator(".likeness tbody tr").first.locator("td").nth(1)
    assert cell.inner_text() == ".41"
    tab.get_by_role("button", name="top_k").click()
    assert cell.inner_text() == ".51"
    cell.hover()
    assert tab.locator("#attlas-agreement .told").inner_text() == (
        "raw_attention and attention_rollout: top_k 0.51"
    )
    tab.wait_for_timeout(250)
    assert "likeness=top_k" in tab.evaluate("location.hash")
    tab.get_by_role("button", name="kendall").click()


def test_an_example_shows_what_was_removed_and_what_it_did(tab):
    readings = tab.locator("#attlas-examples .reading")
    assert readings.count() == 2
    assert readings.nth(0).locator(".removed").all_text_contents() == [",", "film"]
    assert readings.nth(1).locator(".flow").inner_text() == (
        "a clumsy, overwrought film that nevertheless works"
    )
    assert readings.nth(1).locator(".unit").nth(3).inner_text() == "overwrought"  # one chip
    assert "the true label is NEGATIVE" in tab.locator("#attlas-examples .example").inner_text()
    assert "turns" not in readings.nth(0).inner_text()
    assert "NEGATIVE ⚑ the answer turns POSITIVE has 0.12 left" in readings.nth(1).inner_text()
    colours = (
        readings.nth(1)
        .locator(".unit")
        .evaluate_all("all => all.map(each => each.style.backgroundColor)")
    )
    assert colours[7] == "rgb(224, 122, 20)"  # the largest score, for the target


def test_the_licence_of_an_example_has_its_figures_in_the_section(tab):
    rows = tab.locator("#attlas-examples details tbody tr")
    assert rows.first.locator("td").all_text_contents()[-2:] == ["works", "nevertheless · works"]


def test_an_example_may_stand_with_its_finding(show):
    there = replace(sample("Shown where it is claimed."), section="agreement")
    tab = show(report(examples=(there,)).payload())
    assert "Shown where it is claimed." in tab.locator("#attlas-agreement").text_content()
    assert tab.locator("#attlas-examples").count() == 0


def test_the_end_says_how_to_have_it_again(tab):
    foot = tab.locator("footer").text_content()
    for words in ("seed", "8.2 min", "shuffles", "transformers 5.22.2", "attlas audit --model"):
        assert words in foot
    assert "12 × empty text" in tab.locator(".left-out").inner_text()


def test_a_phone_shows_all_without_scrolling_sideways(show):
    tab = show(report().payload(), viewport={"width": 400, "height": 800})
    tab.evaluate(
        "document.querySelectorAll('.report-body details').forEach(each => each.open = true)"
    )
    assert tab.evaluate("document.documentElement.scrollWidth") == 400
    assert tab.locator("#attlas-standing .interval-track").first.bounding_box()["width"] > 300


def test_print_is_on_light_paper_and_fits_its_width(show):
    tab = show(report(table=bare().table).payload(), color_scheme="dark")
    tab.set_viewport_size({"width": 703, "height": 1000})  # A4 less its margins
    tab.emulate_media(media="print")
    tab.locator('.attlas[data-theme="light"]').wait_for()
    assert tab.evaluate("document.documentElement.scrollWidth") == 703
    assert not tab.get_by_role("button", name="dark").is_visible()


def test_an_answer_alone_is_a_page(show):
    tab = show(bare().payload())
    assert tab.locator(".verdict-word").is_visible()
    ids = tab.locator("details.part[id]").evaluate_all("all => all.map(each => each.id)")
    assert ids == ["attlas-verdict"]


def test_hostile_texts_are_only_text(show):
    tab = show(hostile().payload())
    assert tab.locator("#view img").count() == 0
    assert (
        "<img src=x onerror=alert(1)>␛[31m" in tab.locator("#attlas-verdict .where").text_content()
    )
