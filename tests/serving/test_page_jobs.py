"""The live page: searches, pruning, audits, cancel, and a restart."""

import re

import pytest
from serving.opening import (  # noqa: F401
    DOUBLE,
    address,
    numbers,
    opened,
    review,
    serving,
    told,
)

pytestmark = pytest.mark.browser


@pytest.mark.slow
def test_another_attention_is_found_shown_and_put_in(opened):  # noqa: F811
    tab = opened(**review(text=DOUBLE))
    before = numbers(tab)
    tab.locator(".search-button").first.click()
    tab.wait_for_selector(".search-body .plot-dot", timeout=60_000)  # while it searches
    tab.wait_for_selector(".put-in", timeout=60_000)
    names = [tab.locator("#views .two > div").nth(side).locator("h3").first for side in (0, 1)]
    assert [each.inner_text() for each in names] == ["the model's own", "the other one"]
    assert tab.locator("#views .two canvas").count() == 2
    tab.locator(".put-in").click()
    tab.wait_for_selector(".was-mark")
    assert numbers(tab)["POSITIVE"] == pytest.approx(before["POSITIVE"], abs=0.0151)
    assert "the decision stays" in told(tab)
    assert tab.locator(".did li").count() == 1
    link = tab.evaluate("new Promise((done) => setTimeout(() => done(location.href), 300))")
    other = opened(link=link, ready=".did li")
    other.wait_for_selector(".was-mark")
    assert numbers(other) == numbers(tab)


@pytest.mark.slow
def test_a_cancelled_audit_stops_and_a_restart_keeps_the_list(opened, tmp_path):  # noqa: F811
    with serving(tmp_path / "kept") as at:
        tab = opened(at=at, **review(text=DOUBLE))
        tab.locator(".run-audit").click()
        tab.wait_for_selector(".job.running", timeout=60_000)
        tab.locator("#tokens .unit", has_text="not").click()  # the page stays alive meanwhile
        tab.wait_for_selector("#prediction .without")
        tab.locator(".job.running").get_by_role("button", name="cancel").click()
        tab.wait_for_selector(".job.cancelled", timeout=60_000)
        title = tab.locator(".job .job-title").inner_text()
        assert re.search("audit of sentiment", title)
        assert tab.locator(".job.running").count() == 0
    with serving(tmp_path / "kept") as at:
        tab = opened(at=at, ready=".job.cancelled")
        assert tab.locator(".job .job-title").inner_text() == title
        tab.locator(".job").get_by_role("button", name="forget").click()
        tab.wait_for_function("() => !document.querySelector('.job')")


@pytest.mark.slow
def test_a_slider_prunes_heads_and_shows_accuracy_and_prediction(opened):  # noqa: F811
    tab = opened(**review(text=DOUBLE))
    tab.locator(".prune summary").click()
    tab.locator(".run-prune").click()
    slider = tab.locator(".prune input[type=range]")
    slider.wait_for(timeout=120_000)
    slider.fill("12")
    tab.wait_for_selector(".did li")
    words = tab.locator(".pruned-words").inner_text()
    assert re.match(r"12 of 40 heads off: accuracy [01]\.\d{3} \(", words)
    assert tab.locator(".did .label").all_inner_texts() == [
        "12 heads off, least important by attattr"
    ]
    slider.fill("40")
    tab.wait_for_function(
        "() => document.querySelector('.did .label')?.textContent.startsWith('40')"
    )
    slider.fill("0")
    tab.wait_for_function("() => !document.querySelector('.did li')")
