"""Matrix, lines and the whole model: drawn, pointed at, steered, and true to the payload."""

import numpy as np
import pytest
from views import samples

from attlas.views import head_view, model_view
from attlas.views.map_codes import read_site, site_section

pytestmark = pytest.mark.browser

WORDS = ["[CLS]", "the", "cat", "sat", "on", "the", "mat", "[SEP]", "it", "slept", "[SEP]"]


def attention(layers=3, heads=10, queries=11, keys=11):
    chance = np.random.default_rng(0)
    raw = np.exp(2 * chance.normal(size=(layers, 1, heads, queries, keys)))
    return list((raw / raw.sum(axis=-1, keepdims=True)).astype(np.float32))


def weight(payload, layer, head, query, key):
    return read_site(payload["maps"]["sites"][layer])[head, query, key]


def number(text):
    return float(text.replace("−", "-"))


def of_canvas(tab, selector, work):
    """What a function of a canvas' pixels finds: `work` gets its context, width and height."""
    return tab.locator(selector).evaluate(
        f"""each => {{
            const copy = document.createElement("canvas");
            Object.assign(copy, {{width: each.width, height: each.height}});
            const context = copy.getContext("2d", {{willReadFrequently: true}});
            context.drawImage(each, 0, 0);
            return ({work})(context, each.width, each.height); }}"""
    )


INKED = """(context, width, height) => {
    const data = context.getImageData(0, 0, width, height).data;
    let found = 0;
    for (let i = 3; i < data.length; i += 4) found += data[i] > 0;
    return found; }"""


# Lines


def lines(show, **given):
    shown = head_view(attention(), WORDS, **given)
    return show(shown.payload), shown.payload


def test_the_lines_of_a_token_are_told_with_their_weights(show):
    tab, payload = lines(show, layer=1, heads=[4])
    assert tab.locator(".lines .query .token").all_text_contents() == WORDS
    all_of_it = of_canvas(tab, ".lines canvas", INKED)
    tab.locator(".lines .query .token").nth(3).hover()
    told = tab.locator(".lines-view .readout").inner_text()
    assert told.startswith("sat → ")
    row = [weight(payload, 1, 4, 3, key) for key in range(len(WORDS))]
    best = int(np.argmax(row))
    first = told.removeprefix("sat → ").split(" · ")[0].split()
    assert first[0] == WORDS[best]
    assert number(first[1]) == pytest.approx(row[best], abs=0.01)
    assert 0 < of_canvas(tab, ".lines canvas", INKED) < all_of_it
    strips = [
        float(each.split("/")[1].split(")")[0])
        for each in tab.locator(".lines .key .token").evaluate_all(
            "all => all.map(each => each.style.backgroundImage.replaceAll('rgba(', 'rgb(')"
            ".replace(/rgb\\((\\d+), (\\d+), (\\d+), ([\\d.]+)\\)/, 'rgb($1 $2 $3 / $4)'))"
        )
    ]
    assert int(np.argmax(strips)) == best
    tab.locator("h1").hover()
    assert of_canvas(tab, ".lines canvas", INKED) == all_of_it


def test_a_token_that_is_attended_to_has_lines_from_all_who_look(show):
    tab, payload = lines(show, layer=0, heads=[2])
    tab.locator(".lines .key .token").nth(2).hover()
    told = tab.locator(".lines-view .readout").inner_text()
    column = [weight(payload, 0, 2, query, 2) for query in range(len(WORDS))]
    assert told.startswith(f"cat ← {WORDS[int(np.argmax(column))]} ")


def test_several_heads_in_colours_of_their_own(show):
    tab, _ = lines(show, layer=0, heads=[1, 9])
    chips = tab.locator(".chip")
    assert chips.count() == 10
    pressed = tab.locator('.chip[aria-pressed="true"]')
    assert pressed.all_text_contents() == ["1", "9"]
    swatch = """(context, width, height) => {
        const row = context.getImageData(0, 4, width, 1).data, found = [];
        for (let i = 0; i < width; i++) found.push(row[4 * i + 3] > 0);
        return [Array.from(row.slice(0, 3)), found.every(Boolean)]; }"""
    one, other = (of_canvas(tab, f".chip >> nth={head} >> canvas", swatch) for head in (1, 9))
    assert one[0] == other[0]  # the ninth has the colour of the first, and is dashed
    assert (one[1], other[1]) == (True, False)
    chips.nth(4).click()
    assert pressed.all_text_contents() == ["1", "4", "9"]
    chips.nth(9).click()
    assert pressed.all_text_contents() == ["1", "4"]
    tab.get_by_role("button", name="all", exact=True).click()
    assert pressed.count() == 10


def test_the_keyboard_moves_among_tokens_heads_and_layers(show):
    tab, payload = lines(show, layer=0, heads=[0])
    tab.locator(".lines .query .token").first.focus()
    tab.keyboard.press("ArrowDown")
    readout = tab.locator(".lines-view .readout")
    assert readout.inner_text().startswith("the → ")
    tab.keyboard.press("ArrowRight")
    assert tab.locator('.chip[aria-pressed="true"]').all_text_contents() == ["1"]
    tab.keyboard.press("PageDown")
    assert tab.locator(".lines-view select").first.input_value() == "1"
    told = readout.inner_text()
    best = max(range(len(WORDS)), key=lambda key: weight(payload, 1, 1, 1, key))
    assert told.startswith(f"the → {WORDS[best]} ")


def test_lines_between_two_sentences_only(show):
    tab, _ = lines(show, sentence_b_start=8)
    tab.get_by_label("from and to").select_option(label="sentence B → sentence A")
    assert tab.locator(".lines .query .token").all_text_contents() == WORDS[8:]
    assert tab.locator(".lines .key .token").all_text_contents() == WORDS[:8]


def test_cross_attention_joins_two_texts(show):
    shown = head_view(
        cross_attention=attention(2, 3, 4, 6),
        decoder_attention=attention(2, 3, 4, 4),
        encoder_tokens=list("abcdef"),
        decoder_tokens=list("wxyz"),
    )
    tab = show(shown.payload)
    layers = tab.locator(".lines-view select").first
    assert layers.locator("option").all_text_contents() == [
        *("decoder.0", "decoder.1", "cross.0", "cross.1")
    ]
    layers.select_option(label="cross.1")
    assert tab.locator(".lines .query .token").all_text_contents() == list("wxyz")
    assert tab.locator(".lines .key .token").all_text_contents() == list("abcdef")


def test_a_long_text_is_shown_page_by_page(show):
    tokens = [f"t{i}" for i in range(900)]
    tab = show(head_view(attention(1, 1, 900, 900), tokens).payload)
    assert tab.locator(".lines .query .token").count() == 400
    tab.get_by_role("button", name="later").click()
    assert tab.locator(".lines .query .token").first.inner_text() == "t400"


@pytest.mark.parametrize("view", ["lines", "model", "matrix"])
def test_hostile_tokens_are_text_in_every_view(show, view):
    size = len(samples.HOSTILE)
    shown = head_view(attention(1, 2, size, size), samples.HOSTILE, prettify_tokens=False)
    tab = show({**shown.payload, "opens": {"view": view}})
    assert tab.locator("#view img, #view script").count() == 0
    if view == "lines":
        assert tab.locator(".lines .token").all_text_contents()[:2] == samples.HOSTILE[:2]


# The whole model


def model(show, layers=3, heads=4, **options):
    shown = model_view(attention(layers, heads), WORDS, display_mode="light")
    tab = show(shown.payload, **options)
    tab.locator(f'.model canvas[data-drawn="{layers * heads}"]').wait_for()
    return tab, shown.payload


def scale(tab):
    return float(tab.locator(".model canvas").get_attribute("data-scale"))


def settled(tab, wanted):
    """Wait until the scale is as wanted; the page forbids what playwright waits with."""
    for _ in range(100):
        if wanted(scale(tab)):
            break
        tab.wait_for_timeout(50)
    assert wanted(scale(tab))


def test_a_zoom_goes_from_the_model_to_a_head_and_to_a_weight(show):
    tab, payload = model(show)
    canvas = tab.locator(".model canvas")
    assert scale(tab) == 1
    heading = tab.locator(".facts-of-head h3")
    canvas.focus()
    tab.keyboard.press("ArrowRight")
    tab.keyboard.press("ArrowDown")
    chosen = heading.inner_text()
    tab.keyboard.press("Enter")
    settled(tab, lambda scale: scale > 2)
    box = canvas.bounding_box()
    middle = {"x": (88 + box["width"]) / 2 + 4, "y": (24 + box["height"]) / 2 + 4}
    canvas.hover(position=middle)
    assert heading.inner_text() == chosen
    told = tab.locator(".facts-of-head .readout").inner_text()
    layer, head = (int(word) for word in chosen.split() if word.isdigit())
    query, _, key, figure = told.split()
    exact = [
        weight(payload, layer, head, i, j)
        for i, j in np.ndindex(len(WORDS), len(WORDS))
        if (WORDS[i], WORDS[j]) == (query, key)
    ]
    assert min(abs(number(figure) - each) for each in exact) < 0.01
    tab.keyboard.press("Escape")
    settled(tab, lambda scale: scale == 1)


def test_wheel_and_drag_move_the_model_and_a_double_click_opens_a_head(show):
    tab, _ = model(show)
    canvas = tab.locator(".model canvas")
    canvas.hover(position={"x": 150, "y": 120})
    tab.mouse.wheel(0, -300)
    assert scale(tab) == 1  # the page scrolls until the model is chosen
    canvas.click(position={"x": 150, "y": 120})
    for _ in range(4):
        tab.mouse.wheel(0, -100)
    settled(tab, lambda scale: scale > 1.5)
    before = canvas.screenshot()
    tab.mouse.down()
    tab.mouse.move(140, 300)
    tab.mouse.up()
    assert canvas.screenshot() != before
    tab.get_by_role("button", name="show the whole model").click()
    settled(tab, lambda scale: scale == 1)
    canvas.dblclick(position={"x": 150, "y": 120})
    settled(tab, lambda scale: scale > 2)
    assert tab.locator(".facts-of-head h3").inner_text() == "layer 0 · head 0"


def test_a_tile_has_the_colours_of_its_head(show):
    size = 4
    heads = np.zeros((1, 1, 1, size, size), dtype=np.float32)
    heads[0, 0, 0, 1, 2] = 1
    tab = show(model_view(list(heads), list("abcd"), display_mode="light").payload)
    tab.locator('.model canvas[data-drawn="1"]').wait_for()
    painted = """(context, width, height) => {
        const data = context.getImageData(0, 0, width, height).data, found = [];
        for (let i = 0; i < data.length; i += 4)
            if (data[i] === 12 && data[i + 1] === 92 && data[i + 2] === 94)
                found.push([(i / 4) % width, Math.floor(i / 4 / width)]);
        const mean = k => found.reduce((sum, each) => sum + each[k], 0) / found.length;
        return [mean(0), mean(1), width, height]; }"""
    x, y, _, height = of_canvas(tab, ".model canvas", painted)
    side = round((height - 84 - 4) * 0.92)
    assert (x - 88) / side == pytest.approx(2.5 / size, abs=0.03)
    assert (y - 84) / side == pytest.approx(1.5 / size, abs=0.03)


def test_heads_are_sorted_by_pattern_and_by_importance(show):
    importance = [[0.1, 0.4], [0.9, 0.2]]
    given = attention(2, 2)
    tab = show(model_view(given, WORDS, display_mode="light", importance=importance).payload)
    tab.locator('.model canvas[data-drawn="4"]').wait_for()
    order = tab.get_by_label("heads by")
    assert order.locator("option").all_text_contents()[:2] == ["layer", "importance"]
    order.select_option("importance")
    tab.locator('.model canvas[data-drawn="4"]').wait_for()
    tab.locator(".model canvas").hover(position={"x": 120, "y": 120})
    assert tab.locator(".facts-of-head h3").inner_text() == "layer 1 · head 0"
    order.select_option("first")
    firsts = [head[0, :, :, 0].mean(axis=-1) for head in given]
    layer, head = np.unravel_index(np.argmax(firsts), (2, 2))
    tab.locator(".model canvas").hover(position={"x": 121, "y": 121})
    tab.locator(".facts-of-head h3", has_text=f"layer {layer} · head {head}").wait_for()
    figure = tab.locator(".shares .chosen .figure").inner_text()
    assert number(figure) == pytest.approx(np.max(firsts), abs=0.006)


def test_without_sinks_a_row_is_scaled_to_sum_to_one(show):
    shown = head_view(attention(1, 1), WORDS, prettify_tokens=False)
    tab = show({**shown.payload, "opens": {"view": "matrix"}})
    tab.get_by_label("hide the first and special tokens").check()
    row = read_site(shown.payload["maps"]["sites"][0])[0, 3]
    kept = [place for place, word in enumerate(WORDS) if not word.startswith("[")]
    matrix = tab.locator(".matrix canvas")
    cell = matrix.bounding_box()["width"] / len(WORDS)
    for place, expected in [(0, 0), (2, row[2] / row[kept].sum())]:
        matrix.hover(position={"x": (place + 0.5) * cell, "y": 3.5 * cell})
        told = tab.locator(".pane .readout").inner_text()
        assert number(told.split()[-1]) == pytest.approx(expected, abs=0.006)


# The matrix


def test_a_rectangle_is_enlarged_and_escape_shows_all(show):
    tab = show(samples.film())
    tab.get_by_role("button", name="layer 0, head 1").click()
    matrix = tab.locator(".matrix canvas")
    matrix.scroll_into_view_if_needed()
    box = matrix.bounding_box()
    cell = box["width"] / 14
    tab.mouse.move(box["x"] + 2.5 * cell, box["y"] + 3.5 * cell)
    tab.mouse.down()
    tab.mouse.move(box["x"] + 4.5 * cell, box["y"] + 6.5 * cell, steps=4)
    tab.mouse.up()
    assert tab.locator(".axis.query").all_text_contents() == ["great", "film", "s", ","]
    assert tab.locator(".axis.key").all_text_contents() == ["a", "great", "film"]
    cell = matrix.bounding_box()["width"] / 3
    matrix.hover(position={"x": 0.5 * cell, "y": 0.5 * cell})
    weight = (214 / 255) ** 2 * 0.93
    assert tab.locator(".pane .readout").inner_text() == f"great → a {weight:.2f}"
    matrix.focus()
    tab.keyboard.press("Escape")
    assert tab.locator(".axis.key").count() == 14
    tab.keyboard.press("+")
    assert tab.locator(".axis.key").count() == 7
    tab.get_by_role("button", name="show the whole matrix").click()
    assert tab.locator(".axis.key").count() == 14


def test_a_large_head_keeps_its_thin_lines_and_opens_to_its_weights(show):
    size = 3000
    heads = np.zeros((1, size, size), dtype=np.float32)
    heads[0, 1234, 2345] = 0.5
    places = list(range(size))
    site = site_section("encoder.0", ("encoder", 0), (places, places), heads)
    tokens = [{**samples.token(f"t{i}", 0), "score": 0} for i in places]
    maps = {"signed": False, "shows": "attention", "sites": [site]}
    tab = show(samples.explanation([], tokens=tokens, words=None, sources={}, maps=maps))
    inked = """(context, width, height) => {
        const data = context.getImageData(0, 0, width, height).data, found = [];
        for (let i = 0; i < data.length; i += 4)
            if (data[i] !== 252)
                found.push([(i / 4) % width / width, Math.floor(i / 4 / width) / height]);
        return found; }"""
    found = of_canvas(tab, ".matrix canvas", inked)
    assert len(found) >= 1
    assert found[0] == pytest.approx([2345 / size, 1234 / size], abs=0.005)
    tab.locator(".matrix canvas").evaluate("each => each.scrollIntoView()")
    box = tab.locator(".matrix canvas").bounding_box()
    at = (box["x"] + box["width"] * 2345 / size, box["y"] + box["height"] * 1234 / size)
    tab.mouse.move(at[0] - 3, at[1] - 3)
    tab.mouse.down()
    tab.mouse.move(at[0] + 3, at[1] + 3, steps=3)
    tab.mouse.up()
    (x, y), *_ = of_canvas(tab, ".matrix canvas", inked)
    box = tab.locator(".matrix canvas").bounding_box()
    tab.mouse.move(box["x"] + x * box["width"] + 4, box["y"] + y * box["height"] + 4)
    assert tab.locator(".pane .readout").inner_text() == "t1234 → t2345 0.50"


def test_float16_shows_more_digits(show):
    heads = np.array([[[0.12345, 0.87655], [0.5, 0.5]]], dtype=np.float32)
    for precision, told in (("8-bit", "0.12"), ("float16", "0.1235")):
        site = site_section("encoder.0", ("encoder", 0), ([0, 1], [0, 1]), heads, precision)
        maps = {"signed": False, "shows": "attention", "sites": [site]}
        tab = show(samples.explanation(["a", "b"], maps=maps))
        tab.locator(".matrix canvas").hover(position={"x": 5, "y": 5})
        assert tab.locator(".pane .readout").inner_text() == f"a → a {told}"


@pytest.mark.parametrize("view", ["lines", "model", "matrix"])
def test_every_view_fits_a_phone(show, view):
    payload = {**samples.film(), "opens": {"view": view}}
    tab = show(payload, viewport={"width": 390, "height": 844})
    tab.locator(f".{view}-view canvas").first.wait_for()
    assert tab.evaluate("document.documentElement.scrollWidth") == 390
