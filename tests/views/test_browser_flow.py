"""Ribbons through the layers, compared with rollout and with the tree, computed here."""

import numpy as np
import pytest
from results.every_result import EVERY
from views import samples

from attlas.heads.tree import grow
from attlas.views.colours import LIGHT
from attlas.views.map_codes import read_site, site_section

pytestmark = pytest.mark.browser
SUMMARY = "Flow through the layers"


def tables(payload):
    """The layers of a payload, `[layer, head, query, key]`."""
    return np.stack([read_site(site) for site in payload["maps"]["sites"]])


def mixes(payload):
    """Each layer as rollout mixes it: half attention, half residual, rows divided by their sums."""
    mixed = 0.5 * np.eye(14) + 0.5 * tables(payload).mean(axis=1)
    return mixed / mixed.sum(axis=-1, keepdims=True)


def opened(show, payload, **options):
    tab = show(payload, **options)
    tab.get_by_text(SUMMARY).click()
    tab.locator(".ribbon").first.wait_for(state="attached")
    return tab


def ribbons(tab):
    """The value of every ribbon that is drawn, by layer, reader and token."""
    found = tab.locator(".ribbon").evaluate_all(
        "all => all.map(({dataset: d}) => [d.layer, d.to, d.from, d.value].map(Number))"
    )
    return {(int(layer), int(to), int(start)): value for layer, to, start, value in found}


def test_the_ribbons_are_the_part_that_reaches_the_top(show):
    payload = samples.film()
    tab = opened(show, payload)
    layers = mixes(payload)
    reach = np.zeros(14)
    reach[0] = 1.0  # [CLS], where a classifier is read
    shown = ribbons(tab)
    for layer in range(3, -1, -1):
        edges = reach[:, None] * layers[layer]
        own = {key[1:]: value for key, value in shown.items() if key[0] == layer}
        assert len(own) == min(48, int((edges > 1e-6).sum()))
        for (to, start), value in own.items():
            assert value == pytest.approx(edges[to, start], rel=1e-4)
        assert min(own.values()) >= np.sort(edges.ravel())[-49] - 1e-9  # only the strongest
        reach = reach @ layers[layer]
    assert tab.locator(".ribbon:not(.faint)").count() <= 4 * 24
    assert tab.locator(".flow-token.top text").text_content() == "[CLS]"


def test_a_token_shows_its_own_part_and_what_it_is_of_the_whole(show):
    payload = samples.film()
    tab = opened(show, payload)
    whole = np.linalg.multi_dot(mixes(payload)[::-1])
    great = tab.locator('.flow-token[data-position="3"]').first
    great.hover()
    assert tab.locator(".flow-fold .told").inner_text() == (
        f"{100 * whole[0, 3]:.1f} % of what reaches [CLS] comes from great"
    )
    assert {key[2] for key in ribbons(tab) if key[0] == 0} == {3}  # it all starts at the token
    last = sum(value for key, value in ribbons(tab).items() if key[0] == 3)
    assert last == pytest.approx(whole[0, 3], rel=0.02)
    assert tab.locator(".flow .unit.lit").all_text_contents() == ["great"]  # and in the text
    great.click()
    assert tab.locator(".flow-token.top text").text_content() == "great"
    tab.locator("h1").hover()
    assert "What reaches great at the top" in tab.locator(".flow-fold .hint").inner_text()


def signed(payload):
    sites = []
    for number, site in enumerate(payload["maps"]["sites"]):
        chance = np.random.default_rng(number)
        weights = chance.integers(-20, 20, site["shape"]) / 127
        weights[0, 0, 3 + number] = 1.0
        weights[0, 3, 5] = 0.8
        place, axes = (site["kind"], site["layer"]), (site["queries"], site["keys"])
        sites.append(site_section(site["name"], place, axes, weights))
    maps = {"signed": True, "shows": "attribution of attention", "sites": sites}
    return {**payload, "maps": maps}


def test_what_has_a_sign_is_drawn_as_a_tree(show):
    payload = signed(samples.film())
    tab = opened(show, payload)
    edges = grow(tables(payload).sum(axis=1), 0, 0.4, 0.0)
    assert len(edges) > 2
    strong = tab.locator(".ribbon:not(.faint)").evaluate_all(
        "all => all.map(({dataset: d}) => [d.layer, d.to, d.from].map(Number))"
    )
    assert sorted(map(tuple, strong)) == sorted((e.layer, e.parent, e.child) for e in edges)
    assert f"{len(edges)} edges" in tab.locator(".flow-fold .hint").inner_text()
    colours = tab.locator(".ribbon").evaluate_all(
        "all => all.map(e => [Number(e.dataset.value) > 0, e.getAttribute('stroke')])"
    )
    assert {tuple(each) for each in colours} == {
        (True, f"rgb{LIGHT.favour}"),
        (False, f"rgb{LIGHT.against}"),
    }


def test_the_edges_of_an_attribution_tree_are_drawn(show):
    tree = EVERY["Tree"]()
    tab = opened(show, tree.payload())
    assert ribbons(tab) == {
        (edge.layer, edge.parent, edge.child): edge.attribution for edge in tree.edges
    }


def test_width_is_the_weight_of_the_strongest_between_two_tokens(show):
    tab = opened(show, samples.film())
    drawn = tab.locator(".ribbon:not(.own)").evaluate_all(
        "all => all.map(e => [e.dataset.value, e.getAttribute('stroke-width')].map(Number))"
    )
    most = max(value for value, _ in drawn)
    for value, width in drawn:
        assert width == pytest.approx(max(0.6, value / most * 22 * 0.9), rel=1e-3)


def test_one_map_over_the_whole_model_has_no_flow(show):
    payload = samples.film()
    (first, *_) = payload["maps"]["sites"]
    payload["maps"]["sites"] = [{**first, "name": "all", "kind": "all"}]
    assert show(payload).get_by_text(SUMMARY).count() == 0
    assert show(samples.unsigned()).get_by_text(SUMMARY).count() == 0


def test_of_many_tokens_the_largest_parts_are_drawn_and_it_says_so(show):
    tab = opened(show, samples.long(200, layers=3, heads=2))
    assert tab.locator(".flow-token").count() == 2 * 48
    assert "The 48 tokens of 200" in tab.locator(".flow-fold .hint").inner_text()


def test_hostile_tokens_are_text_and_a_phone_scrolls_down_only(show):
    pieces = samples.HOSTILE
    payload = samples.explanation(pieces, maps=samples.maps(len(pieces), layers=2, heads=1))
    tab = opened(show, payload, viewport={"width": 390, "height": 844})
    assert tab.locator("#view img, #view script").count() == 0
    assert tab.locator(".flow-token text").first.text_content().startswith("</scri")
    assert tab.evaluate("document.documentElement.scrollWidth") == 390


def test_the_keyboard_moves_among_the_tokens(show):
    tab = opened(show, samples.film())
    tab.locator('.flow-token[tabindex="0"]').focus()
    tab.keyboard.press("ArrowRight")
    tab.keyboard.press("ArrowRight")
    assert "comes from not" in tab.locator(".flow-fold .told").inner_text()
    tab.keyboard.press("Enter")
    assert tab.locator(".flow-token.top text").text_content() == "not"
