"""The page of a picture: its patches over it."""

import re

import numpy as np
import pytest
from views import samples

from attlas.views.colours import LIGHT, background, strength
from attlas.views.map_codes import site_section

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
        *("How to read this", "Picture", "Prediction", "Text", "Strongest")
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


def test_a_picture_has_all_else_beside_it_to_the_edge_of_the_page(show):
    tab = show(samples.photograph())
    frame, bars = (tab.locator(each).first.bounding_box() for each in (".frame", ".bars"))
    assert frame["width"] == 448
    assert bars["x"] - (frame["x"] + frame["width"]) < 64
    assert bars["x"] + bars["width"] > 1200 and bars["y"] < frame["y"] + frame["height"]


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
    assert tab.locator(".told").inner_text().startswith("patch 1,1: attention here, layer 0")
    tab.get_by_role("button", name="layer 0, head 1").click()
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
    dark = show({**payload, "words": None}, color_scheme="dark")
    for each in (dark.locator(".picture"), dark.locator(".crop img").first):  # light ink there
        assert each.evaluate("each => getComputedStyle(each).filter") == "invert(0.9)"


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


HALF = (128 / 255) ** 2  # a share that a byte holds exactly


def linked(scale=1.0, *, turned=False):
    """Six words and 36 patches, with a map from the words to the patches, or turned round."""
    weights = np.zeros((2, 6, 36))
    weights[0, 4, 7], weights[0, 4, 8], weights[1, 4, 20] = 0.5, 0.5 * HALF, 0.25
    words, patches = range(6), range(6, 42)
    axes = (patches, words) if turned else (words, patches)
    given = scale * (weights.transpose(0, 2, 1) if turned else weights)
    site = site_section("cross.0", ("cross", 0), axes, given)
    maps = {"signed": False, "shows": "attention", "sites": [site]}
    return {**samples.captioned(), "maps": maps}


def test_a_word_that_is_pointed_at_colours_the_patches_by_its_map(show):
    tab = show(linked())
    before = paper_of(tab, 7), paper_of(tab, 20)
    assert "Point at a word to see its weights (attention)" in tab.locator(".linked").inner_text()
    tab.locator(".flow .unit", has_text="sky").hover()
    assert paper_of(tab, 7) == f"rgb{LIGHT.plain}"
    assert paper_of(tab, 8) == f"rgb{background(HALF, False, LIGHT)}"
    told = tab.locator(".pictures ~ .told").inner_text()
    assert told == "sky: attention here, layer 0 · head 0; strongest weight 0.500"
    tab.get_by_role("button", name="layer 0, head 1").click()
    tab.locator(".flow .unit", has_text="sky").hover()
    assert paper_of(tab, 20) == f"rgb{LIGHT.plain}"
    tab.locator("h1").hover()
    assert (paper_of(tab, 7), paper_of(tab, 20)) == before


def test_nothing_moves_while_a_word_is_pointed_at(show):
    tab = show(linked(), viewport={"width": 390, "height": 844})
    sky = tab.locator(".flow .unit", has_text="sky")
    before = sky.bounding_box()
    sky.hover()
    assert "sky: attention here" in tab.locator(".pictures ~ .told").inner_text()
    assert tab.evaluate("document.documentElement.scrollWidth") == 390
    tab.evaluate("window.scrollTo(0, 0)")
    assert sky.bounding_box() == before


def test_where_patches_attend_to_words_the_column_is_shown(show):
    tab = show(linked(turned=True))
    tab.locator(".flow .unit", has_text="sky").hover()
    assert paper_of(tab, 7) == f"rgb{LIGHT.plain}"
    assert "attention of each patch to it" in tab.locator(".pictures ~ .told").inner_text()


def test_without_a_map_between_them_words_leave_the_patches_and_say_so(show):
    tab = show(samples.captioned())
    before = paper_of(tab, 7)
    tab.locator(".flow .unit", has_text="sky").hover()
    assert paper_of(tab, 7) == before
    assert "no map from words to patches" in tab.locator(".linked").inner_text()
    assert show(samples.photograph()).locator(".linked").count() == 0  # there are no words


def test_a_map_of_zeros_between_words_and_patches_links_nothing(show):
    tab = show(linked(scale=0.0))
    before = paper_of(tab, 7)
    tab.locator(".flow .unit", has_text="sky").hover()
    assert paper_of(tab, 7) == before
    assert "no map from words to patches" in tab.locator(".linked").inner_text()


def test_contours_are_where_the_scores_have_their_level(show):
    payload = samples.photograph(1, 1)
    tab = show(payload)
    assert not tab.locator(".contours").is_visible()
    words = tab.get_by_text("Lines at 25, 50, 75\u00a0% of the strongest patch")
    assert not words.is_visible()
    tab.get_by_role("button", name="contours").click()
    assert tab.locator(".contours").is_visible() and words.is_visible()
    assert tab.evaluate("getComputedStyle(document.querySelector('.patch')).opacity") == "0"
    half = tab.locator('.contour[data-level="0.5"]').get_attribute("d")
    points = {tuple(map(float, each.split())) for each in re.findall(r"[\d.]+ [\d.]+", half)}
    # Around a single patch of full strength, half of it lies half a patch from its centre.
    assert points == {(0.5, 0.0), (1.0, 0.5), (0.5, 1.0), (0.0, 0.5)}
    assert tab.locator(".contour").count() == 3
    tab.get_by_role("slider").fill("30")
    assert tab.evaluate("getComputedStyle(document.querySelector('.contours')).opacity") == "0.3"
    tab.get_by_role("button", name="blended").click()
    assert not tab.locator(".contours").is_visible()


def test_scores_against_the_target_have_contours_of_their_own(show):
    payload = {**samples.photograph(2, 2), "signed": True}
    for row, score in zip(payload["tokens"][1:], (1.0, 0.0, 0.0, -1.0), strict=True):
        row["score"] = score
    tab = show(payload)
    tab.get_by_role("button", name="contours").click()
    strokes = tab.locator(".contour").evaluate_all("all => all.map(e => e.getAttribute('stroke'))")
    assert strokes == [f"rgb{LIGHT.favour}"] * 3 + [f"rgb{LIGHT.against}"] * 3
