"""A comparison in a terminal, in a notebook and on a page, against the numbers of its payload."""

import io

import pytest
from results.every_result import EVERY
from rich.console import Console
from views import samples

from attlas.views import fragment, render
from attlas.views.colours import LIGHT, background, strength

SENTENCE = ["not", "a", "great", "film", "but", "I", "could", "not", "look", "away"]
NAMES = ["attn_lrp", "attention_rollout", "gradient"]


def compared(pieces=None, count=3, **changes):
    """Three explanations of a sentence: two with a sign, one without."""
    shown = samples.explanation(pieces or SENTENCE)
    words = len(shown["tokens"])
    rows = []
    for number in range(count):
        signed = number != 1
        scores = [
            token["score"] * (1 - 0.3 * number * (i % 3)) for i, token in enumerate(shown["tokens"])
        ]
        scores = [round(each if signed else abs(each), 4) for each in scores]
        rows.append(
            {
                "name": f"{NAMES[number % 3]}{number // 3 or ''}",
                "model": "sentiment",
                "method": NAMES[number % 3],
                "target": shown["target"],
                "signed": signed,
                "scores": scores,
                "limit": max(abs(score) for score in scores),
                "special": 0.25 if number == 1 else 0.0,
                "words": None,
                "sources": None,
            }
        )
    pairs = [
        {
            "one": i,
            "other": j,
            "tau": 0.5 - 0.4 * i,
            "overlap": 0.6,
            "chance": 5 / words,
            "by": "score",
            "words": words,
        }
        for i in range(count)
        for j in range(i + 1, count)
    ]
    return {
        **{name: shown[name] for name in ("version", "model", "tokens", "sources", "pictures")},
        "kind": "comparison",
        "headline": "Do these 3 methods agree?",
        "reading": "Each is scaled to its own strongest word.",
        "signed": False,
        "rows": rows,
        "pairs": pairs,
        "top": 5,
        "versions": {},
        "notes": [],
        "code": "attlas.compare([e1, e2])",
        **changes,
    }


def printed(payload, width=80):
    stream = io.StringIO()
    Console(file=stream, width=width, no_color=True).print(render(payload))
    return stream.getvalue()


@pytest.mark.parametrize("count", [2, 3, 7])
def test_a_terminal_shows_each_a_table_and_the_pairs_within_80_columns(count):
    payload = compared(count=count)
    lines = printed(payload).splitlines()
    assert all(len(line) <= 80 for line in lines)
    for row in payload["rows"]:
        assert any(line.startswith(row["name"]) for line in lines)
    great = next(line for line in lines if line.startswith("great "))
    row = payload["rows"][0]
    assert f"{row['scores'][2] / row['limit']:+.2f}" in great
    assert sum("chance" in line for line in lines) == len(payload["pairs"])
    assert "τ +0.50" in printed(payload)


def test_a_notebook_shows_the_same_and_escapes_it():
    payload = compared(["<b>bold</b>", "</div>", "fine"], count=2)
    payload["rows"][0]["name"] = "<img src=x onerror=alert(1)>"
    shown = fragment(payload)
    assert "<img" not in shown and "<b>bold" not in shown
    assert "&lt;b&gt;bold" in shown and "+0.50" in shown


def two_texts():
    """A warm film, and a film that is icy: two words in common, one of each alone."""
    payload = compared(["a", "warm", "film", "icy"], count=2, sources={})
    for row, text, held in (
        (payload["rows"][0], "a warm film", ["a", "warm", "film"]),
        (payload["rows"][1], "A film, icy", ["A", "film", "icy"]),
    ):
        starts = {word.casefold(): text.index(word) for word in held}
        shown = {word.casefold(): word for word in held}
        row["words"] = [
            {"text": shown[name], "start": starts[name], "end": starts[name] + len(name)}
            if (name := token["text"]) in starts
            else None
            for token in payload["tokens"]
        ]
        row["scores"] = [
            score if word else None for score, word in zip(row["scores"], row["words"], strict=True)
        ]
        row["signed"], row["sources"] = True, {"text": text}
    payload["pairs"][0] |= {"words": 2}
    return {**payload, "top": 1}


def test_texts_that_differ_are_both_told():
    lines = [line.rstrip() for line in printed(two_texts()).splitlines()]
    assert "a warm film" in lines and "A film icy" in lines
    assert any(line.startswith("a/A ") for line in lines)
    assert next(line for line in lines if line.startswith("warm ")).endswith("–")
    assert "  2 words are compared, of 3 and 3" in lines
    assert "–" in fragment(two_texts())


@pytest.mark.browser
def test_two_texts_are_drawn_as_they_are_and_compared_where_they_meet(show):
    payload = two_texts()
    tab = show(payload)
    assert tab.locator(".compared .flow").all_inner_texts() == ["a warm film", "A film icy"]
    assert tab.locator(".difference .unit").all_inner_texts() == ["a", "warm", "film"]
    assert tab.locator(".difference .unpaired").all_inner_texts() == ["warm"]
    told = tab.locator(".difference .told").inner_text()
    assert "over 2 words" in told and "The texts have 3 and 3 words" in told
    cells = tab.locator(".word-table tbody tr", has_text="icy").locator("td").all_inner_texts()
    assert cells[0] == "–" and cells[1] != "–"
    tab.get_by_label("One explanation").select_option("1")
    tab.get_by_label("The other explanation").select_option("0")
    assert tab.locator(".difference .unit").all_inner_texts() == ["A", "film", "icy"]
    assert tab.locator(".difference .unpaired").all_inner_texts() == ["icy"]
    first, second = (row["scores"][2] / row["limit"] for row in payload["rows"])
    shown = tab.locator(".difference .unit").nth(1).get_attribute("data-difference")
    assert float(shown) == pytest.approx(second - first, abs=1e-4)


def papers(tab, where):
    return tab.locator(f"{where} .unit").evaluate_all(
        "all => all.map(e => e.style.backgroundColor)"
    )


@pytest.mark.browser
def test_every_explanation_has_the_colours_of_its_own_scale(show):
    payload = compared()
    tab = show(payload)
    assert tab.locator("h2").all_text_contents() == [
        *("How to read this", "Side by side", "How far they agree", "Difference", "Words")
    ]
    for number, row in enumerate(payload["rows"]):
        wanted = [
            f"rgb{background(strength(score, row['limit']), row['signed'], LIGHT)}"
            for score in row["scores"]
        ]
        assert papers(tab, f".compared .one:nth-of-type({number + 1})") == wanted
    told = tab.locator(".compared .who p").all_inner_texts()
    assert told[0] == "target POSITIVE, for and against it"
    assert (
        told[1]
        == "target POSITIVE, strength alone, no sign · 25\u00a0% on special tokens, left out"
    )


@pytest.mark.browser
def test_a_word_lights_up_in_all_and_tells_all_scores(show):
    payload = compared()
    tab = show(payload)
    tab.locator(".compared .unit", has_text="great").first.hover()
    assert tab.locator(".unit.lit").all_inner_texts() == ["great"] * 4
    assert tab.locator(".word-table .lit bdi").all_inner_texts() == ["great"]
    told = tab.locator(".tip").inner_text()
    for row in payload["rows"]:
        shown = format(row["scores"][2], "+.3f" if row["signed"] else ".3f").replace("-", "−")
        assert f"{row['name']} {shown}" in told
    tab.locator("h1").hover()
    assert tab.locator(".lit").count() == 0


@pytest.mark.browser
def test_a_chosen_pair_shows_where_it_differs(show):
    payload = compared()
    tab = show(payload)

    def differences(one, other, size):
        shares = [
            [size(score / row["limit"]) for score in row["scores"]]
            for row in (payload["rows"][one], payload["rows"][other])
        ]
        return [round(a - b, 4) for a, b in zip(*shares, strict=True)]

    def shown():
        values = tab.locator(".difference .unit").evaluate_all(
            "all => all.map(e => e.dataset.difference)"
        )
        return [float(value) for value in values]

    assert shown() == pytest.approx(differences(0, 1, abs), abs=1e-4)  # only one has a sign
    assert "τ +0.50 over 10 words; 3 of the 5 strongest in both (2.5 by chance)" in (
        tab.locator(".difference .told").inner_text()
    )
    tab.get_by_role("button", name="attn_lrp and gradient:").click()
    assert shown() == pytest.approx(differences(0, 2, float), abs=1e-4)
    tab.get_by_label("The other explanation").select_option("1")
    tab.get_by_label("One explanation").select_option("2")
    assert shown() == pytest.approx(differences(2, 1, abs), abs=1e-4)
    paper = f"rgb{background(strength(shown()[0], 1.0), True, LIGHT)}"
    assert papers(tab, ".difference")[0] == paper
    assert (
        tab.locator('.pair-cell[aria-pressed="true"]')
        .get_attribute("aria-label")
        .startswith("gradient and attention_rollout: τ +0.10")
    )


@pytest.mark.browser
def test_the_table_has_a_bar_and_a_figure_in_each_cell(show):
    payload = compared()
    tab = show(payload)
    rows = tab.locator(".word-table tbody tr")
    assert rows.locator("bdi").all_inner_texts() == [token["text"] for token in payload["tokens"]]
    cell = rows.nth(2).locator("td").nth(0)
    row = payload["rows"][0]
    assert cell.inner_text() == f"{row['scores'][2]:+.3f}".replace("-", "−")
    width = cell.locator(".fill").evaluate("each => each.style.width")
    assert float(width.rstrip("%")) == pytest.approx(
        50 * abs(row["scores"][2]) / row["limit"], abs=0.01
    )
    tab.get_by_role("button", name="strongest", exact=True).click()
    strongest = [
        max(abs(each["scores"][i]) / each["limit"] for each in payload["rows"]) for i in range(10)
    ]
    order = sorted(range(10), key=lambda place: -strongest[place])
    assert rows.locator("bdi").first.inner_text() == payload["tokens"][order[0]]["text"]
    assert rows.locator("bdi").last.inner_text() == payload["tokens"][order[-1]]["text"]


@pytest.mark.browser
def test_two_have_no_table_of_pairs_and_hostile_words_are_text(show):
    payload = compared(samples.HOSTILE, count=2)
    payload["rows"][0]["name"] = "<img src=x onerror=alert(1)>"
    tab = show(payload)
    assert tab.locator(".agreement").count() == 0
    assert tab.locator("#view img, #view script").count() == 0
    assert tab.locator(".compared .unit").first.inner_text() == "</script>"
    assert tab.locator(".compared h3").first.inner_text() == "<img src=x onerror=alert(1)>"


@pytest.mark.browser
def test_patches_are_drawn_for_each(show):
    payload = compared(["0,0", "0,1"], count=2, sources={})
    for token in payload["tokens"]:
        token |= {"segment": "image", "start": None, "end": None}
    payload["pictures"] = [{"segment": "image", "grid": [1, 2], "image": None}]
    tab = show(payload)
    assert tab.locator(".compared .patch").count() == 4
    tab.locator(".compared .patch").first.hover()
    assert tab.locator(".patch.lit").count() == 3


@pytest.mark.browser
def test_the_keyboard_moves_among_words_and_a_phone_scrolls_down_only(show):
    tab = show(compared(), viewport={"width": 390, "height": 844})
    assert tab.evaluate("document.documentElement.scrollWidth") == 390
    tab.locator(".compared .unit").first.focus()
    tab.keyboard.press("ArrowRight")
    assert tab.locator(".compared .unit:focus").inner_text() == "a"
    assert tab.locator(".unit.lit").all_inner_texts() == ["a"] * 4


@pytest.mark.browser
def test_a_result_is_drawn_as_it_is(show):
    tab = show(EVERY["Comparison"]().payload())
    assert tab.locator("h1").inner_text() == "Do gradient_attention and raw_attention agree?"
    assert tab.locator(".compared .flow").first.inner_text() == "Not good films!"
