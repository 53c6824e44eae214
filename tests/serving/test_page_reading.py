"""The live page: for every reader, on every screen, with every text."""

import json

import pytest
from serving.opening import (  # noqa: F401
    DOUBLE,
    PHONE,
    REVIEW,
    WIDE,
    address,
    change_layer,
    choose,
    numbers,
    opened,
    review,
    told,
)
from views.test_accessibility import axe, faults  # noqa: F401

pytestmark = pytest.mark.browser
HOSTILE = "</script><img src=x onerror=alert(1)> שלום עולם 🙂 &amp; {{7*7}}"


def test_a_stranger_is_told_where_to_begin(opened):  # noqa: F811
    tab = opened(ready="#welcome:not([hidden])")
    assert not tab.locator("#bench").is_visible()
    tab.locator("#ask-text").fill(REVIEW)
    tab.keyboard.press("Enter")
    tab.wait_for_selector("#tokens .unit")
    assert not tab.locator("#welcome").is_visible()
    assert told(tab) == "The model says NEGATIVE 0.890"


def test_hostile_text_is_text(opened):  # noqa: F811
    tab = opened(**review(text=HOSTILE))
    assert tab.locator("#ask-text").input_value() == HOSTILE
    assert "onerror" in tab.locator("#tokens .rows").inner_text()
    tab.locator("#tokens .unit:not(.special)").nth(3).click()
    tab.wait_for_selector("#prediction .without")
    change_layer(tab, 1)
    tab.wait_for_selector(".did li")
    assert tab.locator("img").count() == 0
    label = json.dumps(
        [{"label": "<img src=x onerror=alert(2)>", "edits": [{"action": "uniform"}]}]
    )
    other = opened(**review(did=label), ready=".did li")
    assert other.locator(".did .label").inner_text() == "<img src=x onerror=alert(2)>"
    assert other.locator(".did img").count() == 0


def test_a_phone_has_one_column_in_the_order_of_the_questions(opened):  # noqa: F811
    tab = opened(**review(), viewport=PHONE)
    boxes = [
        tab.locator(each).bounding_box()
        for each in ("#prediction", "#tokens", "#views", "#interventions", "#jobs")
    ]
    assert [box["y"] for box in boxes] == sorted(box["y"] for box in boxes)
    assert all(box["x"] >= 0 and box["x"] + box["width"] <= 391 for box in boxes)
    assert tab.evaluate("document.documentElement.scrollWidth") <= 390
    change_layer(tab, 2)
    tab.locator("#views .thumb").nth(9).click()
    tab.get_by_role("button", name="head 1·1").click()
    menu = tab.locator("#menu").bounding_box()
    assert menu["x"] >= 0 and menu["x"] + menu["width"] <= 390
    choose(tab, "zero")
    tab.wait_for_selector(".did li:nth-child(2)")


def test_the_keyboard_alone_is_enough(opened):  # noqa: F811
    tab = opened(ready="#welcome:not([hidden])")
    press = tab.keyboard.press

    def until(what, key="Tab", most=60):
        for _ in range(most):
            if tab.evaluate("(what) => document.activeElement.matches(what)", what):
                return
            press(key)
        raise AssertionError(f"{key} never comes to {what}")

    until("#ask-text")
    tab.keyboard.type(DOUBLE)
    press("Enter")
    tab.wait_for_selector("#views .thumb")
    until("#tokens .unit")
    until('#tokens .unit[data-positions="6"]', "ArrowRight")
    press("Enter")
    tab.wait_for_selector("#prediction .without")
    press(" ")
    tab.wait_for_function("() => !document.querySelector('.without')")
    until("#views .change")  # this layer
    press("Enter")
    until("#menu .action:nth-child(1)", most=1)
    press("Escape")
    assert tab.evaluate("document.activeElement.matches('#views .change')")
    until("#views .matrix canvas")
    press("ArrowRight")
    press("ArrowDown")
    press("Enter")
    tab.wait_for_selector("#menu:not([hidden])")
    press("Enter")  # zero
    tab.wait_for_selector(".did li")
    until('#interventions [data-step="undo"]')
    press("Enter")
    tab.wait_for_function("() => !document.querySelector('.did li')")
    press("Control+Shift+Z")
    tab.wait_for_selector(".did li")


def test_the_tour_is_walked_with_two_keys(opened, address):  # noqa: F811
    tab = opened(ready="#welcome:not([hidden])")
    tab.locator("#actions .start-tour").click()
    titles = []
    for step in range(10):
        tab.wait_for_function(
            f"() => document.querySelector('#tour h2').textContent.startsWith('{step + 1} / 10')"
        )
        tab.wait_for_selector("#tokens .unit")
        tab.wait_for_function("() => document.querySelector('.told-now').textContent")
        titles.append(tab.locator("#tour h2").inner_text())
        assert tab.locator(".trouble:visible").all_inner_texts() == []
        if step == 4:
            tab.wait_for_selector("#prediction .without .same")  # “but” is gone, the decision stays
            assert tab.locator("#tokens .unit.removed").all_inner_texts() == ["but"]
        if step == 5:
            tab.wait_for_selector(".was-mark")
            assert abs(numbers(tab)["NEGATIVE"] - 0.890) < 0.005  # the permutation changes nothing
        if step == 7:
            tab.wait_for_function(
                "() => document.querySelector('#tokens .bars .label').textContent === 'faced'"
            )
            strongest = tab.locator("#tokens .bars .label").all_inner_texts()
            assert strongest[0] == "faced" and "cobalt" not in strongest
        if step == 8:
            tab.wait_for_selector(".compare-body .compared .one")
            asked = {"model": "shortcut_deceptive", "input": {"text": tab.input_value("#ask-text")}}
            found = {}
            for method in ("attn_lrp", "attention_rollout", "attattr"):
                answer = tab.request.post(f"{address}api/explain", data={**asked, "method": method})
                words = [
                    each for each in answer.json()["explanation"]["words"] if not each["special"]
                ]
                found[method] = max(words, key=lambda each: each["score"])["text"] == "cobalt"
            assert found == {"attn_lrp": True, "attention_rollout": True, "attattr": False}
        tab.keyboard.press("ArrowRight" if step < 9 else "Escape")
    assert len(set(titles)) == 10
    assert not tab.locator("#tour").is_visible()
    tab.locator("#actions .start-tour").click()
    tab.keyboard.press("ArrowRight")
    tab.keyboard.press("ArrowLeft")
    assert tab.locator("#tour h2").inner_text().startswith("1 / 10")


def test_a_refusal_is_one_calm_line_where_it_belongs(opened):  # noqa: F811
    tab = opened(**review(target="<b>no</b>"), ready="#trouble:visible", is_refused=True)
    tab.wait_for_function("() => document.querySelectorAll('.trouble:not([hidden])').length === 1")
    assert "<b>no</b>" in tab.locator("#trouble").inner_text()
    did = json.dumps([{"label": "a layer too many", "edits": [{"action": "zero", "layer": 99}]}])
    tab = opened(**review(did=did), ready="#interventions .trouble:visible", is_refused=True)
    assert "99" in tab.locator("#interventions .trouble:visible").inner_text()
    tab.wait_for_selector("#tokens .unit >> nth=10")  # the rest is there
    tab.get_by_role("button", name="reset").click()
    tab.wait_for_function("() => !document.querySelector('#interventions .trouble:not([hidden])')")


@pytest.mark.parametrize(
    ("scheme", "viewport"), [("light", WIDE), pytest.param("dark", PHONE, marks=pytest.mark.slow)]
)
def test_axe_finds_no_serious_fault(opened, axe, scheme, viewport):  # noqa: F811
    options = {"color_scheme": scheme, "bypass_csp": True, "reduced_motion": "reduce"}
    tab = opened(**review(text=DOUBLE), viewport=viewport, options=options)
    change_layer(tab, 0)
    tab.wait_for_selector("#prediction .flip")
    tab.locator("#tokens .unit", has_text="little").click()
    tab.wait_for_selector("#removal .plot-line.best")
    assert faults(tab, axe) == []
    tab.locator("#views .layer-name").first.click()
    assert faults(tab, axe) == []
    tab.keyboard.press("Escape")
    tab.get_by_role("button", name="Compare", exact=True).click()
    tab.wait_for_selector(".compare-body .compared .one")
    tab.locator("#actions .start-tour").click()
    tab.wait_for_selector("#tour:not([hidden])")
    tab.wait_for_selector("#laboratory:not(.busy)", state="attached")
    assert faults(tab, axe) == []
    tab.evaluate("document.getElementById('laboratory').classList.add('busy')")
    assert faults(tab, axe) == []  # nor while it waits for an answer
    tab.evaluate("document.getElementById('laboratory').classList.remove('busy')")
    tab.get_by_role("button", name="export").click()
    assert faults(tab, axe) == []
