import json
import re
from base64 import b64encode
from hashlib import sha256
from html.parser import HTMLParser
from pathlib import Path

import pytest
from views import samples

from attlas import views as view_module
from attlas.views import page
from attlas.views.page import view_script

SCRIPTS = Path(view_module.__file__).with_name("browser")


class Parts(HTMLParser):
    """The elements of a page with their attributes and the text directly inside."""

    def __init__(self, text):
        super().__init__()
        self.elements = []
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append([tag, dict(attrs), ""])

    def handle_endtag(self, tag):
        self.elements.append(["after", {}, ""])

    def handle_data(self, data):
        if self.elements:
            self.elements[-1][2] += data

    def all(self, tag):
        return [(attributes, text) for name, attributes, text in self.elements if name == tag]


def payload_in(text):
    return next(inside for attributes, inside in Parts(text).all("script") if "id" in attributes)


def hostile():
    return samples.explanation(samples.HOSTILE, notes=["</script><script>alert(2)</script>"])


@pytest.mark.parametrize("make", [samples.film, samples.image, samples.pair, hostile])
def test_the_payload_comes_back_whole(make):
    assert json.loads(payload_in(page(make(), "title"))) == make()


def test_a_hostile_payload_adds_no_element():
    tame = Parts(page(samples.explanation(["tame"]), "title"))
    wild = Parts(page(hostile(), "title"))
    assert [tag for tag, *_ in wild.elements] == [tag for tag, *_ in tame.elements]


def test_the_payload_has_no_sign_that_html_or_javascript_would_obey():
    assert not re.search("[<>&\u2028\u2029\ud800]", payload_in(page(hostile(), "title")))


def test_the_title_is_escaped():
    text = page(samples.film(), "</title><script>alert(1)</script>\ud800")
    assert "<script>alert" not in text
    assert Parts(text).all("title")[0][1].startswith("</title><script>")
    text.encode()


@pytest.mark.parametrize("number", [float("nan"), float("inf"), float("-inf")])
def test_a_number_json_has_no_word_for_is_refused(number):
    with pytest.raises(ValueError, match="JSON compliant"):
        page({**samples.film(), "target": {"value": number}}, "title")


def test_nothing_is_loaded_from_anywhere():
    text = page(samples.film(), "title")
    assert not re.search(r"https?://|@import|\bsrc=|url\(", text)
    links = [attributes["href"] for attributes, _ in Parts(text).all("link")]
    assert links == ["data:,"]


def test_only_the_script_and_the_style_inside_may_act():
    parts = Parts(page(samples.film(), "title"))
    policy = next(a["content"] for a, _ in parts.all("meta") if "http-equiv" in a)
    script = next(inside for attributes, inside in parts.all("script") if "id" not in attributes)
    style = parts.all("style")[0][1]
    for kind, inside in (("script", script), ("style", style)):
        digest = b64encode(sha256(inside.encode()).digest()).decode()
        assert f"{kind}-src 'sha256-{digest}';" in policy
    assert policy.startswith("default-src 'none';")
    assert "unsafe" not in policy


def test_every_script_is_checked_and_short():
    for path in sorted(SCRIPTS.glob("*.js")):
        text = path.read_text("utf-8")
        assert not re.search("@ts-(nocheck|ignore|expect-error)", text), path.name
        assert len(text.splitlines()) <= 300, path.name


def test_the_script_has_all_doors_and_no_comment_for_the_type_checker():
    script = view_script()
    doors = re.search(r"\nexport \{ (.*) \};\nexport default \{ render \};\n$", script)
    names = doors[1].split(", ")
    assert names[0] == "embed"
    for name in names:
        assert re.search(
            rf"^(?:async )?function {name}\(|^const {name} = ", script, re.MULTILINE
        ), name
    assert len(re.findall(r"^export", script, re.MULTILINE)) == 2
    assert "@param" not in script and "@template" not in script


def test_only_what_was_packed_here_goes_in_as_it_is():
    made = samples.film()
    site = made["maps"]["sites"][0]
    assert site["data"] in payload_in(page(made, "title"))
    site["data"] = "</script><script>alert(3)</script>"
    assert "</script><script>alert(3)" not in page(made, "title")
    assert json.loads(payload_in(page(made, "title"))) == made
