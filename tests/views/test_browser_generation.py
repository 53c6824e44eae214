"""The page of what a model wrote."""

import base64
import re

import numpy as np
import pytest
from views import samples

from attlas.views.colours import LIGHT, background, strength

pytestmark = pytest.mark.browser
OUTPUTS = range(5, 13)  # Paris . It lies on the Seine !


def matrix(payload):
    return np.frombuffer(base64.b64decode(payload["data"]), "<f4").reshape(payload["shape"])


def papers(tab):
    """The colour of the paper under each token, as numbers."""
    found = tab.locator(".flow .unit").evaluate_all("all => all.map(e => e.style.backgroundColor)")
    return [tuple(map(int, re.findall(r"\d+", each))) for each in found]


def expected(scores):
    limit = max(scores)
    return [background(strength(float(score), float(limit)), False, LIGHT) for score in scores]


def close(one, other):
    """The same colours, but for a rounding of the mean."""
    return np.abs(np.array(one) - np.array(other)).max() <= 1


def word(tab, text):
    return tab.locator(".unit.written", has_text=re.compile(f"^{re.escape(text)}$"))


def test_the_order_of_the_page(show):
    tab = show(samples.generation())
    assert tab.locator("h1").inner_text() == "Why “Paris. It lies on the Seine!”?"
    parts = ["Text", "Strongest", "What the model might have written", "Output × input", "Notes"]
    assert tab.locator("h2").all_text_contents() == ["How to read this", *parts]
    assert tab.locator(".flow").all_text_contents() == [
        "The capital of France is",
        "Paris. It lies on the Seine!",
    ]
    assert "explain_generation" in tab.locator("footer pre").inner_text()


def test_the_sum_is_that_of_what_is_chosen(show):
    payload = samples.generation()
    values = [target["value"] for target in payload["targets"]]
    payload["sums"] = [{"rest_of": "biases", "scores": value - 0.125} for value in values]
    tab = show(payload)
    figures = tab.locator(".sum .figure")
    mean = np.mean(values)
    assert figures.all_text_contents() == [f"{mean - 0.125:.3f}", "0.125", f"{mean:.3f}"]
    word(tab, "Seine").click()
    one = values[OUTPUTS.index(11)]
    assert figures.all_text_contents() == [f"{one - 0.125:.3f}", "0.125", f"{one:.3f}"]


def test_the_table_has_a_legend(show):
    payload = samples.generation()
    key = show(payload).locator(".whole .legend").inner_text().split()
    assert key == ["0.000", f"{matrix(payload).max():.3f}"]


def test_at_first_all_that_was_written_is_explained(show):
    payload = samples.generation()
    tab = show(payload)
    assert close(papers(tab), expected(matrix(payload).mean(axis=0)))
    assert tab.locator(".told").inner_text().startswith("All that was written")


def test_pointing_shows_a_row_and_leaving_takes_it_back(show):
    payload = samples.generation()
    tab = show(payload)
    before = papers(tab)
    word(tab, "lies").hover()
    assert papers(tab) == expected(matrix(payload)[3]) != before
    assert tab.locator(".unit.later").all_text_contents() == ["on", "the", "Seine", "!"]
    tab.locator("h1").hover()
    assert papers(tab) == before


def test_a_click_keeps_a_row_and_another_lets_it_go(show):
    payload = samples.generation()
    tab = show(payload)
    before = papers(tab)
    word(tab, "lies").click()
    word(tab, "Paris").hover()  # tells its score, and changes nothing
    assert papers(tab) == expected(matrix(payload)[3])
    score = matrix(payload)[3, 5]
    assert f"score {float(score):.6g}" in tab.locator(".tip").inner_text()
    assert word(tab, "lies").get_attribute("aria-pressed") == "true"
    assert tab.locator(".told").inner_text() == "lies probability 0.420"
    assert tab.locator(".prediction li.target .label").all_text_contents() == [" lies"]
    assert tab.locator(".bars .label").all_text_contents()[0] == "It"
    word(tab, "lies").click()
    tab.locator("h1").hover()
    assert papers(tab) == before


@pytest.mark.parametrize("way", ["shift", "drag", "keys", "arrows"])
def test_a_span_is_the_mean_of_its_rows(show, way):
    payload = samples.generation()
    tab = show(payload)
    if way == "shift":
        word(tab, "It").click()
        word(tab, "on").click(modifiers=["Shift"])
    elif way == "drag":
        word(tab, "It").hover()
        tab.mouse.down()
        word(tab, "on").hover()
        tab.mouse.up()
    elif way == "arrows":
        word(tab, "It").focus()
        tab.keyboard.press("Shift+ArrowRight")
        tab.keyboard.press("Shift+ArrowRight")
    else:
        word(tab, "It").focus()
        tab.keyboard.press("Enter")
        tab.keyboard.press("ArrowRight")
        tab.keyboard.press("ArrowRight")
        tab.keyboard.press("Shift+Enter")
    tab.locator("h1").hover()
    assert close(papers(tab), expected(matrix(payload)[2:5].mean(axis=0)))
    assert tab.locator(".unit.chosen").all_text_contents() == ["It", "lies", "on"]
    assert tab.locator(".told").inner_text() == "It lies on mean probability 0.420"


def test_a_span_can_be_summed(show):
    payload = samples.generation()
    tab = show(payload)
    word(tab, "It").hover()
    tab.mouse.down()
    word(tab, "on").hover()
    tab.mouse.up()
    tab.get_by_role("button", name="sum", exact=True).click()
    assert tab.locator(".told").inner_text() == "It lies on sum of probability 1.260"
    summed = matrix(payload)[2:5].sum(axis=0)
    assert close(papers(tab), expected(summed))
    tab.locator(".flow .unit", has_text="France").hover()
    told = re.search(r"score ([\d.]+)", tab.locator(".tip").inner_text())
    assert float(told.group(1)) == pytest.approx(float(summed[3]), rel=1e-5)
    tab.get_by_role("button", name="mean", exact=True).click()
    assert tab.locator(".told").inner_text() == "It lies on mean probability 0.420"


@pytest.mark.parametrize("way", ["double-click", "key"])
def test_a_whole_sentence_is_chosen_while_words_are_shown(show, way):
    payload = samples.generation()
    tab = show(payload)
    if way == "double-click":
        word(tab, "on").dblclick()
    else:
        word(tab, "on").focus()
        tab.keyboard.press("s")
    tab.locator("h1").hover()
    chosen = tab.locator(".unit.chosen").all_text_contents()
    assert chosen == ["It", "lies", "on", "the", "Seine", "!"]
    assert close(papers(tab), expected(matrix(payload)[2:].mean(axis=0)))


def test_the_keyboard_reaches_the_output_and_escape_lets_go(show):
    tab = show(samples.generation())
    before = papers(tab)
    tab.locator(".flow .unit").first.focus()
    for _ in range(8):
        tab.keyboard.press("ArrowRight")
    assert tab.evaluate("document.activeElement.textContent") == "lies"
    tab.keyboard.press("Enter")
    assert tab.locator(".unit.chosen").all_text_contents() == ["lies"]
    tab.keyboard.press("Escape")
    tab.evaluate("document.activeElement.blur()")
    assert papers(tab) == before


def test_the_keys_of_a_matrix_do_no_harm_in_the_table(show):
    tab = show(samples.generation())
    canvas = tab.locator(".table canvas")
    canvas.focus()
    for key in ("ArrowDown", "+", "-", "Escape", "ArrowRight"):
        canvas.press(key)
    # The first arrow goes to the first cell, the second one to the right.
    assert tab.locator(".readout").inner_text().startswith("Paris ← capital ")


def test_one_written_word_opens_in_its_tokens(show):
    payload = samples.generation()
    first, last = payload["outputs"][0], payload["outputs"][-1]
    kept = [word for word in payload["words"] if word["positions"][-1] < first]
    word = {**payload["words"][-1], "positions": list(range(first, last + 1))}
    tab = show({**payload, "words": [*kept, word]})
    assert tab.locator(".choice button[aria-pressed='true']").first.inner_text() == "tokens"
    assert tab.locator(".unit.written").count() == len(payload["outputs"])


def test_sentences_are_chosen_whole(show):
    payload = samples.generation()
    tab = show(payload)
    tab.get_by_role("button", name="sentences", exact=True).click()
    assert tab.locator(".unit.written").all_text_contents() == ["Paris.", "It lies on the Seine!"]
    word(tab, "It lies on the Seine!").click()
    mean = matrix(payload)[2:].mean(axis=0)
    assert close(papers(tab), expected([mean[:5].sum(), mean[5:7].sum(), mean[7:].sum()]))
    assert tab.locator(".table canvas").evaluate("each => [each.width, each.height]") == [3, 2]


def test_the_table_tells_scores_and_chooses_rows(show):
    payload = samples.generation()
    tab = show(payload)
    canvas = tab.locator(".table canvas")
    assert canvas.evaluate("each => [each.width, each.height]") == [13, 8]
    assert tab.locator(".axis.down").all_text_contents()[:3] == ["Paris", ".", "It"]
    cell = canvas.bounding_box()["width"] / 13
    place = {"x": 5.5 * cell, "y": 3.5 * cell}
    canvas.hover(position=place)
    assert tab.locator(".readout").inner_text() == f"lies ← Paris {matrix(payload)[3, 5]:.3f}"
    assert tab.locator(".flow .lit").all_text_contents() == ["Paris"]
    canvas.click(position=place)
    assert tab.locator(".unit.chosen").all_text_contents() == ["lies"]
    assert tab.locator(".band.chosen-row").count() == 1
    pixel = "each => Array.from(each.getContext('2d').getImageData(7, 3, 1, 1).data).slice(0, 3)"
    limit = matrix(payload).max()
    share = strength(float(matrix(payload)[3, 7]), float(limit))
    assert tuple(canvas.evaluate(pixel)) == background(share, False, LIGHT)


def test_a_sink_can_be_left_out(show):
    payload = samples.generation()
    scores = matrix(payload).copy()
    scores[:, 0] = 9.0
    data = base64.b64encode(scores.tobytes()).decode()
    tab = show({**payload, "data": data, "sinks": [{"position": 0, "share": 0.83}]})
    switch = tab.get_by_label("leave out the first token The (holds 83 %)")
    assert not switch.is_checked()
    assert papers(tab)[0] == LIGHT.plain
    switch.check()
    scores[:, 0] = 0.0
    assert close(papers(tab), expected(scores.mean(axis=0)))
    assert show(payload).locator(".sinks").count() == 0


def test_hostile_tokens_are_text(show):
    payload = samples.generation("a b", " c d")
    hostile = ["</script>", "<img src=x onerror=alert(1)>"]
    for row, text in zip(payload["tokens"][1:3], hostile, strict=True):
        row["text"] = row["label"] = text
    for level in ("words", "sentences"):
        payload[level][-1]["text"] = "<img src=x onerror=alert(2)>"
    payload["predictions"][0][0]["label"] = payload["targets"][0]["name"] = "<b>bold</b>"
    payload["sources"] = {"text": "a </script>", "output": " <img src=x onerror=alert(3)> d"}
    seen = {"segment": "image", "grid": [1, 1], "image": "https://example.org/a.png"}
    tab = show({**payload, "pictures": [seen]})
    for level in ("tokens", "sentences", "words"):
        tab.get_by_role("button", name=level, exact=True).click()
        tab.locator(".unit.written").first.click()
        assert tab.locator("#view img, #view script").count() == 0
    assert "<img src=x onerror=alert(2)>" in tab.locator(".flow .unit").all_text_contents()


def test_a_phone_scrolls_down_only(show):
    long = " ".join(["one two three four. Five"] * 12)
    tab = show(samples.generation(written=" " + long), viewport={"width": 390, "height": 844})
    assert tab.evaluate("document.documentElement.scrollWidth") == 390
    scroll = tab.locator(".whole .scroll")
    assert scroll.evaluate("each => each.scrollWidth > each.clientWidth")
    scroll.evaluate("each => { each.scrollLeft = 200; }")
    side = tab.locator(".table .side").bounding_box()["x"]
    assert side == pytest.approx(scroll.bounding_box()["x"], abs=1)  # the labels stay in sight
