import json

import numpy as np
import pytest
from views import samples

from attlas.views import page, write_whole
from attlas.views.colours import DARK, LIGHT, background, ink, strength
from attlas.views.map_codes import site_section
from attlas.views.page import view_script

pytestmark = pytest.mark.browser


def test_the_order_of_the_page(show):
    tab = show(samples.film())
    headings = tab.locator("h1, h2").all_text_contents()
    parts = ["How to read this", "Prediction", "Text", "Strongest", "Maps of attention", "Notes"]
    assert headings == ["What speaks for POSITIVE?", *parts]
    assert (
        tab.locator(".reading-guide p")
        .inner_text()
        .endswith("Orange speaks for POSITIVE, blue against it.")
    )
    assert "model sentiment" in tab.locator(".facts").inner_text()
    assert "true label" not in tab.locator(".facts").inner_text()
    assert tab.locator(".prediction .target").inner_text().split() == [
        "POSITIVE",
        "0.290",
        "target",
    ]
    assert "attlas.explain(" in tab.locator("footer pre").inner_text()


def test_the_true_label_is_told_where_it_is_known(show):
    tab = show({**samples.film(), "true_label": "POSITIVE"})
    assert "true label POSITIVE" in tab.locator(".facts").inner_text()


def test_the_strongest_stand_beside_the_text_where_there_is_room(show):
    tab = show(samples.film(), viewport={"width": 1400, "height": 900})
    text, bars = (tab.locator(each).bounding_box() for each in (".rows", ".bars"))
    assert bars["x"] > text["x"] + text["width"]
    assert bars["x"] + bars["width"] > 1200
    tab.set_viewport_size({"width": 800, "height": 900})
    text, bars = (tab.locator(each).bounding_box() for each in (".rows", ".bars"))
    assert bars["y"] > text["y"] + text["height"]


def test_words_that_occur_twice_carry_their_place(show):
    labels = show(samples.film()).locator(".bars .label").all_text_contents()
    assert labels[:2] == ["not 1st", "great"]
    assert "not 2nd" in labels


def test_hostile_tokens_are_text(show):
    payload = samples.explanation(
        samples.HOSTILE,
        model="<img src=x onerror=alert(3)>",
        notes=["<b onclick=alert(1)>"],
        reading="<script>alert(2)</script>",
        code="</script>",
        maps=samples.maps(len(samples.HOSTILE), layers=1, heads=1),
    )
    tab = show(payload)
    shown = tab.locator(".flow .unit").all_text_contents()
    assert shown[:4] == ["</script>", "<img src=x onerror=alert(1)>", "שלום", "🧑‍🚀"]
    assert shown[4:9] == ["e\u0301\u0323", "⏎", "∅", "␛[31mred", "\\u202eevil"]
    assert tab.locator("#view img, #view script, #view b[onclick]").count() == 0


def test_a_script_from_elsewhere_may_not_run(browser, tmp_path):
    text = page(samples.film(), "title").replace("</body>", "<script>alert(1)</script></body>")
    tab = browser.new_page()
    dialogs, messages = [], []
    tab.on("dialog", lambda dialog: (dialogs.append(1), dialog.dismiss()))
    tab.on("console", lambda message: messages.append(message.text))
    tab.goto(write_whole(tmp_path / "page.html", text).as_uri())
    tab.close()
    assert dialogs == []
    assert any("Content Security Policy" in message for message in messages)


def test_words_and_tokens(show):
    tab = show(samples.film())
    units = tab.locator(".flow .unit")
    assert units.count() == 13
    tab.get_by_role("button", name="tokens", exact=True).click()
    assert units.count() == 14
    assert units.nth(5).inner_text() == "s"
    tab.get_by_role("button", name="words", exact=True).click()
    assert units.nth(4).inner_text() == "films"
    assert tab.locator(".flow").inner_text() == (
        "[CLS] not a great films, but I could not look away [SEP]"
    )


@pytest.mark.parametrize(("scheme", "theme"), [("light", LIGHT), ("dark", DARK)])
def test_the_colours_are_those_of_python(show, scheme, theme):
    payload = samples.film()
    tab = show(payload, color_scheme=scheme)
    units = tab.locator(".flow .unit")
    for place, word in enumerate(payload["words"]):
        if word["special"]:
            continue
        paper = background(strength(word["score"], 0.42), True, theme)
        look = units.nth(place).evaluate("each => [each.style.backgroundColor, each.style.color]")
        assert look == [f"rgb{paper}", f"rgb{ink(paper, theme)}"]


def test_the_switch_turns_the_theme(show):
    tab = show(samples.film(), color_scheme="light")
    paper = "getComputedStyle(document.querySelector('.attlas')).backgroundColor"
    assert tab.evaluate(paper) == f"rgb{LIGHT.paper}"
    tab.get_by_role("button", name="dark").click()
    assert tab.evaluate(paper) == f"rgb{DARK.paper}"
    tab.emulate_media(media="print")
    tab.locator('.attlas[data-theme="light"]').wait_for()
    assert tab.evaluate(paper) == f"rgb{LIGHT.paper}"


def test_hovering_lights_a_token_everywhere_and_tells_its_score(show):
    tab = show(samples.film())
    assert tab.locator(".lit").count() == 0
    tab.locator(".flow .unit", has_text="films").hover()
    assert tab.locator(".flow .lit").all_text_contents() == ["films"]
    assert tab.locator(".bars .lit .label").all_text_contents() == ["films"]
    assert tab.locator(".axis.query.lit").all_text_contents() == ["film", "s"]
    assert tab.locator(".tip").inner_text() == "film ##s, score +0.14, positions 4 5"
    tab.locator("h1").hover()
    assert tab.locator(".lit").count() == 0
    assert not tab.locator(".tip").is_visible()


def test_a_token_stays_lit_when_the_window_changes(show):
    tab = show(samples.film())
    tab.locator(".flow .unit", has_text="great").focus()
    canvas = tab.locator(".matrix canvas").element_handle()
    tab.set_viewport_size({"width": 900, "height": 900})
    canvas.wait_for_element_state("hidden")  # redrawn for the new width
    assert tab.locator(".axis.query.lit").all_text_contents() == ["great"]


def test_a_bar_lights_its_word(show):
    tab = show(samples.film())
    tab.locator(".bars li").nth(1).hover()
    assert tab.locator(".flow .lit").all_text_contents() == ["great"]


def test_the_keyboard_reaches_every_unit(show):
    tab = show(samples.film())
    tab.locator(".flow .unit").first.focus()
    for _ in range(3):
        tab.keyboard.press("ArrowRight")
    focused = tab.evaluate("document.activeElement.getAttribute('aria-label')")
    assert focused == "great: great, score +0.38, position 3"
    assert tab.locator('.flow .unit[tabindex="0"]').count() == 1
    tab.keyboard.press("Enter")
    assert tab.locator(".chosen h3").inner_text() == "great attends to"


def test_a_thumbnail_opens_its_head(show):
    tab = show(samples.film())
    tab.get_by_role("button", name="layer 2, head 3").click()
    assert tab.locator(".pane h3").first.inner_text() == "layer 2 · head 3"
    assert tab.locator('.thumb[aria-pressed="true"]').count() == 1
    size = tab.locator(".matrix canvas").evaluate("each => [each.width, each.height]")
    assert size == [14, 14]
    assert tab.locator(".axis.key").all_text_contents()[3:6] == ["great", "film", "s"]


def test_the_tab_key_stops_once_among_the_heads_and_arrows_move(show):
    tab = show(samples.film())
    stops = tab.locator('.thumb[tabindex="0"]')
    assert tab.locator(".thumb").count() > 2 and stops.count() == 1
    assert stops.get_attribute("aria-pressed") == "true"
    tab.get_by_role("button", name="layer 1, head 1").click()
    tab.keyboard.press("ArrowDown")
    tab.keyboard.press("ArrowRight")
    tab.keyboard.press("Enter")
    assert tab.locator(".pane h3").first.inner_text() == "layer 2 · head 2"
    assert stops.count() == 1 and stops.get_attribute("title") == "layer 2 · head 2"


def test_the_matrix_tells_weights_and_lists_a_row(show):
    tab = show(samples.film())
    tab.get_by_role("button", name="layer 0, head 1").click()
    matrix = tab.locator(".matrix canvas")
    cell = matrix.bounding_box()["width"] / 14
    matrix.hover(position={"x": 2.5 * cell, "y": 3.5 * cell})
    # Head 1 of layer 0 looks at the token before: in row 3 a code of 2 · (127 - 20), of 0.93.
    weight = (214 / 255) ** 2 * 0.93
    assert tab.locator(".readout").inner_text() == f"great → a {weight:.2f}"
    assert tab.locator(".flow .lit").all_text_contents() == ["a"]
    matrix.click(position={"x": 0.5 * cell, "y": 3.5 * cell})
    assert tab.locator(".chosen li .label").first.inner_text() == "a"
    assert tab.locator(".chosen li .figure").first.inner_text() == f"{weight:.2f}"
    assert tab.locator(".band.chosen-row").count() == 1
    matrix.click(position={"x": 0.5 * cell, "y": 3.5 * cell})
    assert tab.locator(".chosen li").count() == 0


def signed_maps():
    """Two sites of two heads: one is zero but for one weight, and one is zero throughout."""
    maps = samples.maps(14, layers=2, heads=2)
    heads = np.zeros((2, 14, 14))
    heads[0, 5, 5], heads[0, 5, 6] = -0.4, 0.202
    maps["sites"][0]["limits"] = [0.02, 0.01]
    places = list(range(14))
    maps["sites"][1] = site_section("cross.0", ("cross", 0), (places, places), heads)
    return {**samples.film(), "maps": {**maps, "signed": True, "shows": "attention × gradient"}}


def pixels(tab, selector):
    """The colours of a canvas, row by row."""
    return tab.locator(selector).evaluate(
        """each => {
            const context = each.getContext('2d');
            const found = context.getImageData(0, 0, each.width, each.height);
            return Array.from({length: each.width * each.height},
                (_, i) => Array.from(found.data.slice(4 * i, 4 * i + 3))); }"""
    )


def test_signed_maps_and_several_kinds_of_attention(show):
    tab = show(signed_maps())
    names = tab.locator(".head-row:not(.numbers) > span").all_text_contents()
    assert names == ["encoder.0", "cross.0"]
    assert "Maps of attention × gradient" in tab.locator("h2").all_text_contents()
    red, _, blue = pixels(tab, ".matrix canvas")[5 * 14 + 5]
    assert blue > red  # below zero is blue, and the legend says so
    assert tab.locator(".pane .legend").inner_text() == "against −0.400\n+0.400 for the target"


def test_the_strongest_head_is_open_and_heads_are_numbered(show):
    tab = show(signed_maps())
    assert tab.locator(".pane h3").first.inner_text() == "cross.0 · head 0"
    assert (
        tab.locator('.thumb[aria-pressed="true"]').get_attribute("aria-label") == "cross.0, head 0"
    )
    assert tab.locator(".head-row.numbers .number").all_text_contents() == ["0", "1"]
    columns = tab.locator(".number, .head-row:nth-child(2) .thumb").all()
    places = [each.bounding_box()["x"] for each in columns]
    assert places[:2] == places[2:]


def test_zero_is_zero_in_signed_maps(show):
    tab = show(signed_maps())
    matrix = tab.locator(".matrix canvas")
    cell = matrix.bounding_box()["width"] / 14
    matrix.hover(position={"x": 1.5 * cell, "y": 0.5 * cell})
    assert tab.locator(".readout").inner_text() == "[CLS] → not 0.000"
    matrix.hover(position={"x": 6.5 * cell, "y": 5.5 * cell})
    assert tab.locator(".readout").inner_text() == "s → , +0.20"
    matrix.click(position={"x": 0.5 * cell, "y": 5.5 * cell})
    listed = tab.locator(".chosen li .figure").all_text_contents()
    assert listed == ["−0.40", "+0.20"]  # and none of the zeros
    empty = pixels(tab, '[aria-label="cross.0, head 1"] canvas')
    assert set(map(tuple, empty)) == {LIGHT.paper}


def test_a_map_over_the_whole_model_has_no_heads(show):
    maps = samples.maps(14, layers=1, heads=1)
    maps["sites"][0].update(kind="all", name="all")
    tab = show({**samples.film(), "maps": {**maps, "shows": "relevance"}})
    assert tab.locator(".thumb").count() == 0
    assert tab.locator(".pane h3").first.inner_text() == "the whole model"


def test_maps_alone_are_shown_without_scores(show):
    film = samples.film()
    tokens = [{name: row[name] for name in row if name != "score"} for row in film["tokens"]]
    kept = {name: film[name] for name in ("sources", "pictures", "maps")}
    tab = show({"kind": "maps", "version": 1, "headline": "Where?", "tokens": tokens, **kept})
    assert tab.locator("h1, h2").all_text_contents() == ["Where?", "Text", "Maps of attention"]
    tab.locator(".flow .unit", has_text="great").hover()
    assert tab.locator(".tip").inner_text() == "great, position 3"
    assert tab.locator(".axis.key.lit").all_text_contents() == ["great"]


def test_two_segments_are_two_rows(show):
    pair = samples.pair()
    tab = show(pair)
    sums = [
        sum(t["score"] for t in pair["tokens"] if t["segment"] == name and not t["special"])
        for name in ("question", "context")
    ]
    shown = tab.locator(".segment .mono").all_text_contents()
    assert [float(each.replace("−", "-")) for each in shown] == pytest.approx(sums, abs=0.006)
    assert tab.locator(".row h3").all_text_contents() == ["question", "context"]
    assert tab.locator(".flow").nth(1).inner_text().startswith("Ada Lovelace wrote")


def test_offsets_count_code_points(show):
    tokens = [
        samples.token("🧑‍🚀", 0.5, start=0, end=3),
        samples.token("a", 0.2, start=4, end=5),
        samples.token("b", 0.1, start=5, end=6),
    ]
    payload = samples.explanation([], tokens=tokens, words=None, sources={"text": "🧑‍🚀\nab"})
    assert show(payload).locator(".flow").inner_text() == "🧑‍🚀\nab"


def test_right_to_left_text_runs_from_the_right(show):
    tab = show(samples.explanation(["שלום", "עולם"]))
    boxes = [unit.bounding_box()["x"] for unit in tab.locator(".flow .unit").all()]
    assert boxes[0] > boxes[1]


def test_a_sink_can_be_left_out(show):
    payload = samples.unsigned()
    payload["tokens"][0].update(special=False, score=5.0)
    payload["words"][0].update(special=False, score=5.0)
    tab = show({**payload, "sinks": [{"position": 0, "share": 0.71}]})
    paper = "each => each.style.backgroundColor"
    units = tab.locator(".flow .unit")
    switch = tab.get_by_label("leave out the first token [CLS] (holds 71 %)")
    assert not switch.is_checked()
    assert tab.locator(".bars .label").first.inner_text() == "[CLS]"
    switch.check()
    assert tab.locator(".bars .label").first.inner_text() == "not 1st"
    assert units.nth(0).evaluate(paper) == f"rgb{LIGHT.paper}"
    assert units.nth(1).evaluate(paper) == f"rgb{LIGHT.plain}"
    units.nth(0).hover()
    assert tab.locator(".tip").inner_text() == "[CLS], score 0, position 0"
    assert show(payload).locator(".sinks").count() == 0


def test_a_grid_of_patches(show):
    tab = show(samples.image(14, 14))
    assert tab.locator(".patch").count() == 196
    tab.locator(".patch").nth(15).hover()
    assert tab.locator(".tip").inner_text().startswith("patch 1,1, score 0.000")
    assert tab.locator(".flow .unit").all_text_contents() == ["[CLS]"]


@pytest.mark.parametrize("size", [1, 2000])
def test_any_length_is_drawn_at_once(show, size):
    tab = show(samples.long(size, layers=1, heads=2))
    assert tab.locator(".flow .unit").count() == size
    assert tab.locator(".matrix canvas").evaluate("each => each.width") == min(size, 640)
    slowest = tab.evaluate(
        """async () => {
            const unit = document.querySelectorAll(".flow .unit")[0];
            const start = performance.now();
            unit.dispatchEvent(new PointerEvent("pointerenter"));
            await new Promise(requestAnimationFrame);
            return performance.now() - start;
        }"""
    )
    assert slowest < 1000


def test_a_phone_scrolls_down_only(show):
    tab = show(samples.film(), viewport={"width": 390, "height": 844})
    assert tab.evaluate("document.documentElement.scrollWidth") == 390


def test_what_is_wider_than_the_phone_says_so(show):
    tab = show(samples.film(), viewport={"width": 390, "height": 844})
    box = tab.locator(".heads")
    tab.locator(".heads.wide.more").wait_for()
    cue = "getComputedStyle(document.querySelector('.heads'), '::before').content"
    assert "scroll" in tab.evaluate(cue)
    box.evaluate("each => { each.scrollLeft = each.scrollWidth; }")
    tab.locator(".heads.wide:not(.more)").wait_for()
    tab.set_viewport_size({"width": 1400, "height": 844})
    tab.locator(".heads:not(.wide)").wait_for()


def test_nothing_moves_when_asked_not_to(show):
    tab = show(samples.film(), reduced_motion="reduce")
    duration = "getComputedStyle(document.querySelector('.fill')).transitionDuration"
    assert tab.evaluate(duration) == "0s"


def test_the_code_can_be_copied(show):
    tab = show(samples.film(), permissions=["clipboard-read", "clipboard-write"])
    tab.get_by_role("button", name="copy as Python").click()
    tab.get_by_text("copied").wait_for()
    assert tab.evaluate("navigator.clipboard.readText()") == samples.film()["code"]


def test_both_doors_draw_alike(browser):
    tab = browser.new_page()
    drawn = tab.evaluate(
        """async ([source, payloads]) => {
            const url = URL.createObjectURL(new Blob([source], {type: "text/javascript"}));
            const module = await import(url);
            const [page, notebook] = [document.createElement("div"), document.createElement("div")];
            document.body.append(page, notebook);
            module.embed(page, payloads[1]);
            const held = {payload: payloads[0], state: {}}, listeners = {};
            const model = {
                get: (name) => held[name],
                set: (name, value) => { held[name] = value; },
                save_changes: () => {},
                on: (name, listener) => { listeners[name] = listener; },
                off: (name) => { delete listeners[name]; },
            };
            const stop = module.default.render({model, el: notebook});
            const before = notebook.innerHTML;
            held.payload = payloads[1];
            listeners["change:payload"]();
            const after = notebook.innerHTML;
            stop();
            return {page: page.innerHTML, before, after, stopped: Object.keys(listeners)};
        }""",
        [view_script(), json.loads(json.dumps([samples.pair(), samples.unsigned()]))],
    )
    tab.close()
    assert drawn["page"] == drawn["after"] != drawn["before"]
    assert drawn["stopped"] == []


def test_special_tokens_are_told_of_if_they_hold_something(show):
    payload = samples.film()
    assert "Special tokens hold 31 %" in show(payload).locator(".legend").first.inner_text()
    for row in payload["tokens"] + payload["words"]:
        row["score"] *= not row["special"]
    assert "Special" not in show(payload).locator(".legend").first.inner_text()


def test_scores_that_add_up_say_how(show):
    figures = [".sum .figure", ".sum .figure + .quiet"]
    found = {"base": 0.125, "of": "every token masked", "scores": 0.165}
    tab = show({**samples.film(), "sum": found})
    numbers, words = (tab.locator(each).all_text_contents() for each in figures)
    assert numbers == ["0.125", "−0.245", "0.410", "0.290"]  # the special ones are not coloured
    assert words[:3] == ["every token masked", "without special tokens", "[CLS] [SEP]"]
    tab = show({**samples.film(), "sum": {**found, "scores": 0.1}})
    numbers = tab.locator(".sum .figure").all_text_contents()
    assert numbers == ["0.125", "−0.310", "0.410", "0.065", "0.290"]
    assert show(samples.film()).locator(".sum").count() == 0
    tab = show({**samples.film(), "sum": {"rest_of": "biases", "scores": 0.34}})
    numbers = tab.locator(".sum .figure").all_text_contents()
    assert numbers == ["−0.070", "0.410", "−0.050", "0.290"]
    assert "base value" not in tab.locator(".sum").inner_text()


def test_scores_without_special_tokens_add_up_in_one_row(show):
    payload = samples.film()
    payload["tokens"] = [{**each, "special": False} for each in payload["tokens"]]
    tab = show({**payload, "sum": {"rest_of": "biases", "scores": 0.34}})
    assert tab.locator(".sum .figure").all_text_contents() == ["0.340", "−0.050", "0.290"]
    assert "special" not in tab.locator(".sum").inner_text()


def test_a_warning_stands_above_the_scores(show):
    tab = show(samples.explanation(["good", "film"], warning="not converged: <b>no"))
    warned = tab.locator(".warning")
    assert warned.inner_text() == "Warning: not converged: <b>no"
    assert warned.bounding_box()["y"] < tab.locator(".flow").bounding_box()["y"]
    assert not show(samples.explanation(["good", "film"])).locator(".warning").count()
