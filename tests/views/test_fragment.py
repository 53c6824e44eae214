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
        assert not {name for name, _ in attrs} - {"style", "class", "title"}

    def handle_data(self, data):
        self.text.append(data)


def colour(text):
    return tuple(int(text[i : i + 2], 16) for i in (0, 2, 4))


@pytest.mark.parametrize(
    "payload",
    [samples.film(), samples.pair(), samples.image(), samples.explanation(samples.HOSTILE)],
)
def test_needs_neither_script_nor_network(payload):
    words = Words(fragment(payload))
    assert words.tags <= {"div", "span", "b", "table", "tr", "td"}
    assert not re.search("https?:|url", fragment(payload))


def test_hostile_tokens_are_text():
    payload = samples.explanation(samples.HOSTILE, notes=["<b>note</b>"], model="<i>")
    words = Words(fragment(payload))
    for expected in ("</script>", "<img src=x onerror=alert(1)>", "\\u202eevil", "&amp;", "⏎"):
        assert expected in words.text
    assert "Note: <b>note</b>" in words.text


def test_says_prediction_target_and_words_in_order():
    text = "".join(Words(fragment(samples.film())).text)
    order = ["target POSITIVE", "NEGATIVE 0.710", "POSITIVE 0.290 (target)", "[CLS] not a great"]
    places = [text.index(part) for part in [*order, "not-0.420great+0.380", "Note: The text"]]
    assert places == sorted(places)


def test_every_colour_comes_with_a_readable_ink():
    pattern = r"background-color:#(\w{6});color:#(\w{6})"
    pairs = re.findall(pattern, fragment(samples.film()))
    assert len(pairs) == 12  # the card, and the units that are not special
    assert all(contrast(colour(paper), colour(ink)) >= 4.5 for paper, ink in pairs)


def test_a_grid_has_a_cell_for_each_patch():
    assert fragment(samples.image(3, 4)).count("width:14px") == 12
