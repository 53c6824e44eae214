"""The page of a picture: its patches over it."""

import pytest
from views import samples

from attlas.views.colours import LIGHT, background, strength

pytestmark = pytest.mark.browser


def paper_of(tab, place):
    return tab.locator(".patch").nth(place).evaluate("each => each.style.backgroundColor")


def test_patches_lie_over_the_picture_where_they_belong(show):
    tab = show(samples.photograph(4, 8))
    picture = tab.locator(".picture").bounding_box()
    assert tab.locator(".picture").evaluate("each => [each.naturalWidth, each.complete]") == [
        224,
        True,
    ]
    box = tab.locator(".patch").nth(8 + 2).bounding_box()  # the second row, the third column
    assert box["x"] - picture["x"] == pytest.approx(picture["width"] * 2 / 8, abs=1)
    assert box["y"] - picture["y"] == pytest.approx(picture["height"] / 4, abs=1)
    assert box["width"] == pytest.approx(picture["width"] / 8, abs=1)
    assert box["height"] == pytest.approx(picture["height"] / 4, abs=1)


def test_patches_have_the_colours_of_their_scores(show):
    payload = samples.photograph(4, 8)
    tab = show(payload)
    scores = [row["score"] for row in payload["tokens"][1:]]
    for place in (0, 10, 13):
        paper = background(strength(scores[place], max(scores)), False, LIGHT)
        assert paper_of(tab, place) == f"rgb{paper}"
    tab.locator(".patch").nth(10).hover()
    assert tab.locator(".tip").inner_text().startswith(f"patch 1,2, score {scores[10]:.6g}")


def test_from_the_picture_alone_to_the_scores_alone(show):
    tab = show(samples.photograph(4, 8))
    opacity = "getComputedStyle(document.querySelector('.patch')).opacity"
    opacities = "all => all.map(each => Number(getComputedStyle(each).opacity))"
    found = tab.locator(".patch").evaluate_all(opacities)  # the weakest veil the picture least
    assert max(found) == pytest.approx(0.6)
    assert min(found) < 0.4
    slider = tab.get_by_role("slider")
    slider.focus()
    tab.keyboard.press("Home")
    assert tab.evaluate(opacity) == "0"
    tab.keyboard.press("End")
    assert tab.evaluate(opacity) == "1"


def test_a_text_and_a_picture_are_both_shown(show):
    payload = samples.captioned()
    tab = show(payload)
    assert tab.locator("h2").all_text_contents() == [
        *("How to read this", "Prediction", "Picture", "Text", "Strongest")
    ]
    assert tab.locator(".flow").inner_text() == "what is in the sky ?"
    assert tab.locator(".patch").count() == 36
    limit = max(row["score"] for row in payload["tokens"][6:])
    for place, row in enumerate(payload["tokens"][6:8]):  # a scale of its own for each
        paper = background(strength(row["score"], limit), False, LIGHT)
        assert paper_of(tab, place) == f"rgb{paper}"
    shown = tab.locator(".flow .unit").first.evaluate("each => each.style.backgroundColor")
    limit = max(row["score"] for row in payload["tokens"][:6])
    share = strength(payload["tokens"][0]["score"], limit)
    assert shown == f"rgb{background(share, False, LIGHT)}"


def test_a_chosen_patch_shows_where_it_looks(show):
    payload = samples.photograph(4, 4)
    payload["maps"] = samples.maps(17, layers=1, heads=2)
    tab = show(payload)
    before = paper_of(tab, 5)
    tab.locator(".patch").nth(5).click()
    # The first head looks at itself: token 6 of head 0 has the byte 127 - 30.
    assert paper_of(tab, 5) == f"rgb{LIGHT.plain}" != before
    tab.locator("h1").hover()
    tab.locator(".patch").nth(5).hover()
    assert f"weight {(2 * 97 / 255) ** 2 * 0.93:.2g}" in tab.locator(".tip").inner_text()
    assert tab.locator(".told").inner_text().startswith("patch 1,1: attention here, encoder.0")
    tab.get_by_role("button", name="encoder.0, head 1").click()
    assert paper_of(tab, 4) == f"rgb{LIGHT.plain}"  # the second head at the one before
    tab.locator(".patch").nth(5).click()
    assert paper_of(tab, 5) == before


@pytest.mark.parametrize(
    "address", ["https://example.org/a.png", "data:text/html,x", "javascript:1"]
)
def test_only_a_picture_that_is_in_the_page_is_shown(show, address):
    tab = show(samples.photograph(image=address))
    assert tab.locator("#view img").count() == 0
    assert tab.locator(".patch").count() == 196


def test_several_pictures_share_one_scale(show):
    payload = samples.photograph(2, 2)
    (seen,) = payload["pictures"]
    payload["tokens"] += [{**row, "segment": "image 2"} for row in payload["tokens"][-4:]]
    for row in payload["tokens"][-4:]:
        row["score"] = row["score"] / 2
    payload["pictures"] += [{**seen, "segment": "image 2"}]
    tab = show({**payload, "words": None})
    assert tab.locator(".pictures figcaption").all_inner_texts() == ["image", "image 2"]
    shares = tab.locator(".patch").evaluate_all(
        "all => all.map(each => Number(each.style.getPropertyValue('--share')))"
    )
    assert shares[4:] == pytest.approx([share / 2 for share in shares[:4]], abs=1e-6)
    assert max(shares) == 1


def test_a_picture_without_places_is_shown_as_it_is(show):
    tab = show(samples.photograph(grid=None))
    assert tab.locator("#view .picture").count() == 1 and tab.locator(".patch").count() == 0


def test_a_sound_is_wide_and_shows_its_seconds(show):
    payload = samples.photograph(1, 4, segment="sound")
    for row in payload["tokens"]:
        row["segment"] = "sound"
    for number, row in enumerate(payload["tokens"][-4:]):
        row["label"] = row["text"] = f"{number / 4:.2f} s"
    tab = show({**payload, "words": None})
    assert tab.locator("h2", has_text="Sound").count() == 1
    assert tab.locator("figcaption span").all_inner_texts() == ["0.00 s", "0.75 s"]
    box = tab.locator(".picture").bounding_box()
    assert box["width"] == pytest.approx(4 * box["height"], rel=0.02)
    assert tab.locator(".bars .label").first.inner_text().endswith(" s")


def test_a_phone_scrolls_down_only(show):
    tab = show(samples.photograph(), viewport={"width": 390, "height": 844})
    assert tab.evaluate("document.documentElement.scrollWidth") == 390


def test_a_patch_that_is_named_shows_its_piece_of_the_picture(show):
    tab = show(samples.photograph(4, 4))
    first = tab.locator(".bars li").first
    assert first.locator(".label").inner_text() == "patch 2,2"
    place = first.locator(".crop img").evaluate(
        "each => [each.style.left, each.style.top, each.style.width]"
    )
    assert place == ["-32px", "-32px", "64px"]
    assert show(samples.image(4, 4)).locator(".crop").count() == 0
