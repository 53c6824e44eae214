"""The live page: interventions, undo, words removed, the link and the code."""

import json
import re
import runpy

import numpy as np
import pytest
from serving.opening import (  # noqa: F401
    DOUBLE,
    address,
    change_layer,
    choose,
    numbers,
    opened,
    review,
    told,
)

import attlas
from attlas.models.asking.scores import target_scores
from attlas.models.encoding.request import Request
from attlas.removing.erasures import Erasures

pytestmark = pytest.mark.browser
CLOSE = {"abs": 6e-4}  # the page shows three decimals


@pytest.fixture(scope="module")
def question():
    return attlas.load("sentiment").ask([DOUBLE], Request(target="POSITIVE"))[0]


def computed(question, *edits):
    """The probability that Python computes, with no server."""
    return float(target_scores(question, "probability", edits)[0])


def test_an_intervention_shows_what_python_computes_and_undo_restores_it(opened, question):  # noqa: F811
    tab = opened(**review(text=DOUBLE))
    before = numbers(tab)
    assert before["POSITIVE"] == pytest.approx(computed(question), **CLOSE)
    change_layer(tab, 0)
    tab.wait_for_selector("#prediction .flip")
    assert told(tab).endswith("⚠ flipped: POSITIVE → NEGATIVE")
    after = numbers(tab)
    expected = computed(question, attlas.edits.uniform().at(kind="encoder", layer=0))
    assert after["POSITIVE"] == pytest.approx(expected, **CLOSE)
    assert before["POSITIVE"] - after["POSITIVE"] > 0.1
    assert tab.locator(".was").first.inner_text() == f"was {before['POSITIVE']:.3f}"
    assert tab.locator(".did .label").all_inner_texts() == ["layer 0: uniform"]
    tab.get_by_role("button", name="undo").click()
    tab.wait_for_function("() => !document.querySelector('.flip')")
    assert numbers(tab) == before
    assert tab.locator(".did .label").count() == 0
    tab.get_by_role("button", name="redo").click()
    tab.wait_for_selector("#prediction .flip")
    assert numbers(tab) == after
    tab.get_by_role("button", name="take back").click()
    tab.wait_for_function("() => !document.querySelector('.flip')")
    assert numbers(tab) == before


def test_a_weight_a_row_and_a_head_are_changed_where_they_were_clicked(opened, question):  # noqa: F811
    tab = opened(**review(text=DOUBLE, view=json.dumps({"layer": 0, "head": 4})))
    canvas = tab.locator("#views .matrix canvas")
    cell = canvas.bounding_box()["width"] / 10  # ten tokens
    canvas.click(position={"x": 6.5 * cell, "y": 2.5 * cell})
    assert tab.locator("#menu b").inner_text() == "expected → not · layer 0, head 4"
    tab.locator("#menu .action", has_text="scale").locator("..").locator("input").fill("30")
    choose(tab, "scale")
    tab.wait_for_selector(".did li:nth-child(1)")
    tab.wait_for_selector(".was-mark")
    edit = attlas.edits.scale(30).at(kind="encoder", layer=0, heads=4, queries=2, keys=6)
    assert numbers(tab)["POSITIVE"] == pytest.approx(computed(question, edit), **CLOSE)
    canvas.click(position={"x": 6.5 * cell, "y": 2.5 * cell})
    tab.locator("#menu").get_by_role("button", name="row", exact=True).click()
    choose(tab, "uniform")
    tab.wait_for_selector(".did li:nth-child(2)")
    tab.locator('#views .thumb[aria-pressed="true"]').click()  # the open head once more
    choose(tab, "zero")
    tab.wait_for_selector(".did li:nth-child(3)")
    assert tab.locator(".did .label").all_inner_texts() == [
        "expected → not · layer 0, head 4: times 30",
        "row expected · layer 0, head 4: uniform",
        "layer 0, head 4: zero",
    ]


def test_a_word_is_removed_by_a_click_beside_the_orders_of_others(opened, question):  # noqa: F811
    tab = opened(**review(text=DOUBLE))
    tab.locator("#tokens .unit", has_text="not").click()
    tab.wait_for_selector("#prediction .without")
    erasures = Erasures([question], "mask")
    gone = np.isin(erasures.content(0), [6])[None]
    expected = float(erasures.of(0, gone).probability[0])
    shown = re.search(r"POSITIVE (\d\.\d+)", tab.locator(".without").inner_text())
    assert float(shown[1]) == pytest.approx(expected, **CLOSE)
    assert numbers(tab)["POSITIVE"] == pytest.approx(expected, **CLOSE)
    tab.locator("#tokens .unit", has_text="disappointed").click()
    tab.wait_for_selector("#removal .plot-dot >> nth=3")  # the whole text, two words, and the key
    tab.wait_for_selector("#removal .plot-line.best")
    keys = tab.locator("#removal .plot-keys li").all_inner_texts()
    assert keys == ["attn_lrp", "random orders", "best order found", "your hand"]
    tab.get_by_role("button", name="put all words back").click()
    tab.wait_for_function("() => !document.querySelector('.without')")


def test_a_link_restores_the_state_in_a_fresh_browser(opened):  # noqa: F811
    tab = opened(**review(text=DOUBLE))
    change_layer(tab, 0)
    tab.locator("#tokens .unit", has_text="little").click()
    tab.get_by_role("button", name="lines", exact=True).click()
    tab.wait_for_selector("#prediction .without")
    tab.get_by_role("button", name="share").click()
    link = tab.locator("dialog pre").inner_text()
    other = opened(link=link, ready="#prediction .without")
    other.wait_for_selector("#prediction .flip")
    other.wait_for_selector("#views .lines")
    assert other.locator("#ask-text").input_value() == DOUBLE
    assert other.locator(".did .label").all_inner_texts() == ["layer 0: uniform"]
    assert other.locator("#tokens .unit.removed").all_inner_texts() == ["little"]
    assert numbers(other) == numbers(tab)
    assert told(other) == told(tab)


def test_the_exported_lines_run_and_print_the_numbers_of_the_page(opened, tmp_path, capsys):  # noqa: F811
    tab = opened(**review(text=DOUBLE))
    change_layer(tab, 0)
    tab.locator("#tokens .unit", has_text="not").click()
    tab.wait_for_selector("#prediction .without")
    tab.get_by_role("button", name="export").click()
    tab.get_by_role("button", name="copy as code").click()
    code = tab.locator("dialog .code pre").inner_text()
    (tmp_path / "exported.py").write_text(code, "utf-8")
    capsys.readouterr()
    runpy.run_path(str(tmp_path / "exported.py"))
    printed = capsys.readouterr().out
    after = re.search(r"POSITIVE: \S+ before, (\S+) after", printed)
    assert numbers(tab)["POSITIVE"] == pytest.approx(float(after[1]), **CLOSE)
    without = re.search(r"POSITIVE: (\S+) without", printed)
    assert f"{float(without[1]):.3f}" in tab.locator(".without").inner_text()
    tip = tab.locator("#tokens .bars li", has_text="disappointed").inner_text().split()[-1]
    score = re.search(r"disappointed (\S+)", printed)
    assert float(tip.replace("−", "-")) == pytest.approx(float(score[1]), **CLOSE)


def test_what_is_marked_is_exported_as_rationales(opened, tmp_path):  # noqa: F811
    tab = opened(**review(text=DOUBLE))
    tab.get_by_role("button", name="mark", exact=True).click()
    for word in ("not", "disappointed"):
        tab.locator("#tokens .unit", has_text=word).click()
    assert told(tab).startswith("The model says")  # nothing is removed
    tab.get_by_role("button", name="export").click()
    with tab.expect_download() as saved:
        tab.get_by_role("button", name="rationales").click()
    saved.value.save_as(tmp_path / "marks.jsonl")
    (line,) = (tmp_path / "marks.jsonl").read_text("utf-8").splitlines()
    mark = json.loads(line)
    assert [DOUBLE[start:end] for start, end in mark["spans"]] == ["not", "disappointed"]
    assert (mark["text"], mark["label"]) == (DOUBLE, "POSITIVE")


def test_what_is_seen_is_saved_as_page_and_drawing(opened, browser, tmp_path):  # noqa: F811
    tab = opened(**review(text=DOUBLE))
    tab.get_by_role("button", name="export").click()
    names = {
        "save as a page": "page.html",
        "text as SVG": "text.svg",
        "view as SVG": "view.svg",
        "view as PNG": "view.png",
    }
    for name, file in names.items():
        with tab.expect_download() as saved:
            tab.get_by_role("button", name=name).click()
        saved.value.save_as(tmp_path / file)
    assert "disappointed" in (tmp_path / "text.svg").read_text("utf-8")
    assert "<image" in (tmp_path / "view.svg").read_text("utf-8")  # the map itself
    assert (tmp_path / "view.png").read_bytes().startswith(b"\x89PNG")
    page = browser.new_page()
    page.goto((tmp_path / "page.html").as_uri())
    page.wait_for_selector("footer")
    assert "POSITIVE" in page.locator("h1").inner_text()
    page.close()
