"""A page draws every kind of result, and says so where it does not know a kind."""

import json

import pytest
from results.every_result import EVERY

from attlas.views.kinds import VIEWS
from attlas.views.page import view_script

pytestmark = pytest.mark.browser


@pytest.mark.parametrize("name", EVERY)
def test_every_result_is_drawn_without_an_error(show, name):
    payload = json.loads(json.dumps(EVERY[name]().payload()))
    tab = show(payload)
    assert tab.locator("#view section").count()


def test_a_check_is_drawn_as_two_tables(show):
    tab = show(EVERY["CheckResult"]().payload())
    assert tab.locator("h2").all_text_contents() == [
        *("How to read this", "Opened exactly", "Methods that can run")
    ]
    rows = tab.locator(".check tr").all_text_contents()
    assert "opened exactlyyes, to the bit" in rows and "gradientyes" in rows


def test_a_trial_says_first_how_to_read_it(show):
    made = EVERY["TrialResult"]().payload()
    tab = show(made)
    assert tab.locator("h2").first.text_content() == "How to read this"
    has_ceiling = any(each["ceiling"] is not None for each in made["trials"][0]["figures"])
    assert ("ceiling" in tab.locator(".reading-guide p").text_content()) == has_ceiling


def test_an_unknown_kind_is_named_with_the_known_ones(browser):
    tab = browser.new_page()
    tab.goto("about:blank")
    shown = tab.evaluate(
        """async (source) => {
            const url = URL.createObjectURL(new Blob([source], {type: "text/javascript"}));
            const element = document.createElement("div");
            try {
                (await import(url)).embed(element, {kind: "toString"});
            } catch (error) {
                return [error.message, element.textContent];
            }
        }""",
        view_script(),
    )
    tab.close()
    message = f"unknown kind of payload 'toString': allowed: {', '.join(sorted(VIEWS))}"
    assert shown == [message, message]
