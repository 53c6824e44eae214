"""What is chosen on a page is kept in its address; an address from anybody is read with care."""

import pytest
from results.every_result import EVERY
from views import samples

pytestmark = pytest.mark.browser

HOSTILE = (
    "#layer=99&head=-1&unit=<img src=x onerror=alert(1)>&__proto__=1&constructor=2&token=1e3"
    "&row=1.5&picked=0,x&scheme=pink&leftOut=yes&ranking=toString&nonsense=%E0%A4%A&tip=1&=&&%"
)


def hash_of(tab):
    """The end of the address, once it has settled."""
    tab.wait_for_timeout(250)
    return tab.evaluate("location.hash")


def pressed(tab):
    return tab.locator('.thumb[aria-pressed="true"]').evaluate_all("all => all.map(e => e.title)")


def test_a_page_that_nobody_touched_has_a_plain_address(show):
    assert hash_of(show(samples.film())) == ""


def test_what_is_chosen_is_restored_from_the_address(show):
    tab = show(samples.film())
    tab.locator(".thumb").nth(8).click()
    tab.get_by_role("button", name="tokens", exact=True).click()
    tab.get_by_role("button", name="dark").click()
    tab.locator(".flow .unit").nth(5).click()
    tab.mouse.move(0, 0)
    address = hash_of(tab)
    chosen = dict(part.split("=") for part in address[1:].split("&"))
    assert chosen == {"layer": "1", "head": "2", "unit": "tokens", "scheme": "dark", "row": "5"}
    again = show(samples.film(), address)
    assert pressed(again) == ["layer 1 · head 2"]
    assert again.locator(".matrix .chosen-row").count() == 1
    assert again.locator(".flow .unit").nth(5).inner_text() == "s"
    assert again.locator('.attlas[data-theme="dark"]').count() == 1
    assert hash_of(again) == address


def test_a_choice_that_is_taken_back_leaves_the_address(show):
    tab = show(samples.film(), "#unit=tokens")
    tab.get_by_role("button", name="words", exact=True).click()
    assert hash_of(tab) == ""


def test_an_unknown_or_hostile_address_changes_nothing(show):
    plain, wild = show(samples.film()), show(samples.film(), HOSTILE)
    assert wild.locator("#view").inner_html() == plain.locator("#view").inner_html()
    wild.locator(".thumb").nth(1).click()
    assert hash_of(wild) in ("#%&head=1", "#&head=1", "#head=1")


@pytest.mark.parametrize("name", EVERY)
def test_no_kind_of_result_is_hurt_by_a_hostile_address(show, name):
    show(EVERY[name]().payload(), HOSTILE)


def test_the_address_can_be_edited_while_the_page_is_open(show):
    tab = show(samples.film())
    tab.evaluate("location.hash = 'layer=2&head=3'")
    tab.locator('.thumb[aria-pressed="true"][title="layer 2 · head 3"]').wait_for()


def test_a_place_on_the_page_stays_in_the_address(show):
    tab = show(samples.film(), "#somewhere&head=4")
    assert pressed(tab) == ["layer 0 · head 4"]
    tab.locator(".thumb").nth(1).click()
    assert hash_of(tab) == "#somewhere&head=1"


def test_a_layer_that_has_fewer_heads_shows_its_first(show):
    payload = samples.film()
    site = payload["maps"]["sites"][1]
    site["shape"] = [2, 14, 14]
    site["limits"] = site["limits"][:2]
    payload["maps"]["sites"][0]["limits"][5] = 0.99
    tab = show(payload, "#layer=1")
    assert pressed(tab) == ["layer 1 · head 0"]


def test_chosen_output_and_ranking_are_kept(show):
    tab = show(samples.generation(), "#picked=1,2")
    assert tab.locator(".written.chosen").count() == 2
    tab.locator(".written").nth(0).click()
    tab.mouse.move(0, 0)
    assert hash_of(tab) == "#picked=0"
    payload = EVERY["HeadImportance"]().payload()
    second = {**payload["importances"][0], "by": "another"}
    payload["importances"].append(second)
    tab = show(payload, "#ranking=another")
    assert tab.get_by_role("button", name="another").get_attribute("aria-pressed") == "true"


def test_a_payload_may_say_how_it_opens_and_the_address_has_the_last_word(show):
    payload = {**samples.film(), "opens": {"layer": 3, "head": 1, "unit": "tokens", "row": "x"}}
    tab = show(payload)
    assert pressed(tab) == ["layer 3 · head 1"]
    assert tab.locator(".flow .unit").count() == 14
    assert hash_of(tab) == ""
    assert pressed(show(payload, "#head=5")) == ["layer 3 · head 5"]


def test_what_a_payload_opens_can_be_emptied_in_the_address(show):
    payload = {**samples.film(), "opens": {"row": 5, "unit": "tokens"}}
    tab = show(payload)
    assert tab.locator(".matrix .chosen-row").count() == 1
    tab.locator(".flow .unit").nth(5).click()
    tab.mouse.move(0, 0)
    assert hash_of(tab) == "#row="
    assert show(payload, "#row=").locator(".matrix .chosen-row").count() == 0


def test_views_of_maps_are_kept(show):
    tab = show(samples.film(), "#view=lines&heads=0,3&hidden=true")
    assert tab.locator('.chip[aria-pressed="true"]').count() == 2
    assert tab.locator(".sinks input").is_checked()
    tab.locator(".chip").nth(3).click()
    assert hash_of(tab) == "#view=lines&hidden=true"
    other = show(samples.film(), "#view=model&order=broad&heads=0,99&zoom=-.,1,2&part=1,2,3")
    assert other.locator(".model-view canvas").first.is_visible()
    assert other.locator(".model-view select").input_value() == "broad"
    other.get_by_role("button", name="dark").click()
    assert hash_of(other) == "#view=model&order=broad&scheme=dark"


def test_what_a_comparison_and_a_picture_show_is_kept(show):
    tab = show(EVERY["Comparison"]().payload(), "#one=1&other=0&wordOrder=strongest")
    assert tab.get_by_label("One explanation", exact=True).input_value() == "1"
    assert tab.get_by_role("button", name="strongest").get_attribute("aria-pressed") == "true"
    assert hash_of(tab) == "#one=1&other=0&wordOrder=strongest"
    tab = show(samples.photograph(), "#look=contours&together=sum&one=1")
    assert tab.get_by_role("button", name="contours").get_attribute("aria-pressed") == "true"
    tab = show(samples.generation(), "#together=sum")
    assert "summed" in tab.locator(".told").first.inner_text()
