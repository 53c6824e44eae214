import re
from html.parser import HTMLParser

import pytest
from views import samples

from attlas.views import fragment
from attlas.views.colours import contrast


class Words(HTMLParser):
    def __init__(self, text):
        super().__init__()
        self.tags, self.text = set(), []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.tags.add(tag)
        allowed = {"src", "alt", "style"} if tag == "img" else {"style", "class", "title"}
        assert {name for name, _ in attrs} <= allowed

    def handle_data(self, data):
        self.text.append(data)


def colour(text):
    return tuple(int(text[i : i + 2], 16) for i in (0, 2, 4))


@pytest.mark.parametrize(
    "payload",
    [
        samples.film(),
        samples.pair(),
        samples.image(),
        samples.captioned(),
        samples.generation(),
        samples.explanation(samples.HOSTILE),
    ],
)
def test_needs_neither_script_nor_network(payload):
    words = Words(fragment(payload))
    assert words.tags <= {"div", "span", "b", "table", "tr", "td", "img"}
    assert not re.search("https?:|url", fragment(payload))


def test_hostile_tokens_are_text():
    payload = samples.explanation(samples.HOSTILE, notes=["<b>note</b>"], model="<i>")
    words = Words(fragment(payload))
    for expected in ("</script>", "<img src=x onerror=alert(1)>", "\\u202eevil", "&amp;", "⏎"):
        assert expected in words.text
    assert "Note: <b>note</b>" in words.text


def test_says_prediction_target_and_words_in_order():
    text = "".join(Words(fragment(samples.film())).text)
    order = [
        "What speaks for POSITIVE?",
        "target POSITIVE",
        "A word in orange",
        "NEGATIVE 0.710",
        "POSITIVE 0.290 (target)",
        "[CLS] not a great",
    ]
    places = [text.index(part) for part in [*order, "not (1st)-0.420great+0.380", "Note: The text"]]
    assert places == sorted(places)


def test_the_true_label_is_told_where_it_is_known():
    text = "".join(Words(fragment({**samples.film(), "true_label": "POSITIVE"})).text)
    assert "target POSITIVE · true label POSITIVE" in text


def test_every_colour_comes_with_a_readable_ink():
    pattern = r"background-color:#(\w{6});color:#(\w{6})"
    pairs = re.findall(pattern, fragment(samples.film()))
    assert len(pairs) == 12  # the card, and the units that are not special
    assert all(contrast(colour(paper), colour(ink)) >= 4.5 for paper, ink in pairs)


def test_a_grid_has_a_cell_for_each_patch():
    assert fragment(samples.image(3, 4)).count("width:14px") == 12


def test_patches_lie_over_their_picture():
    text = fragment(samples.photograph(3, 4))
    assert text.count(f'<img src="{samples.photograph()["pictures"][0]["image"]}"') == 1
    assert text.count("width:25.0000%;height:33.3333%") == 12
    assert "opacity:0.6" in text


@pytest.mark.parametrize("address", ["https://example.org/a.png", 'data:,"><script>', "x"])
def test_only_a_picture_that_is_in_the_payload_is_shown(address):
    words = Words(fragment(samples.photograph(image=address)))
    assert "img" not in words.tags
    assert "script" not in words.tags


def test_a_text_and_a_picture_are_both_shown():
    text = "".join(Words(fragment(samples.captioned())).text)
    assert "what is in the sky ?" in text
    assert fragment(samples.captioned()).count("width:16.6667%;height:16.6667%") == 36


def test_what_was_written_and_what_it_owes():
    payload = samples.generation()
    text = "".join(Words(fragment(payload)).text)
    assert "smol · attention_rollout · 8 tokens written" in text
    assert "Paris. It lies on the Seine!" in text
    # sin 15 + 3 × 7 = 36, at a distance of one: the strongest of "lies"
    assert "liesIt 0.496" in text
    assert "Note: The model stopped by itself." in text


def test_hostile_tokens_of_a_generation_are_text():
    payload = samples.generation("a", " b")
    for row in payload["tokens"] + payload["words"]:
        row["text"] = row["label"] = "<img src=x onerror=alert(1)>"
    words = Words(fragment({**payload, "model": "<i>", "words": None}))
    assert "<img src=x onerror=alert(1)>" in words.text
    assert not words.tags & {"img", "i"}


def test_a_long_generation_is_cut_short_and_says_so():
    payload = samples.generation(written=" one two" * 30)
    assert "and 20 more: to_html shows all" in fragment(payload)
