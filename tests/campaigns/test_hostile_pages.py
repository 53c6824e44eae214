"""Pages whose every text is hostile: nothing of it runs, loads or becomes an element."""

import json

import numpy as np
import pytest
from campaigning import times
from results.every_result import EVERY
from views.conftest import PLAIN

from attlas.views import page, write_whole

PAGES = times(280, 14)
HOSTILE = [
    "<script>window.harmed = 1</script>",
    "</script><script>window.harmed = 1</script>",
    "<img src=x onerror='window.harmed = 1'>",
    "<svg onload='window.harmed = 1'>",
    "<iframe srcdoc='<script>parent.harmed = 1</script>'></iframe>",
    "<link rel=stylesheet href=https://example.org/a.css>",
    "<style>@import 'https://example.org/b.css';</style>",
    "url(https://example.org/c.png)",
    "'\"><img src=https://example.org/d.png>",
    "javascript:window.harmed=1",
    "data:text/html,<script>opener.harmed=1</script>",
    "<a href=javascript:window.harmed=1 autofocus onfocus=window.harmed=1>",
    "<meta http-equiv=refresh content='0;url=https://example.org'>",
    "<base href=https://example.org/>",
    "<!--",
    "]]>\u2028\u2029\x00\x1b[2J\u202e",
    "${window.harmed = 1}",
    "{{constructor.constructor('window.harmed = 1')()}}",
    "__proto__",
    "x" * 5_000,
]
ELEMENTS = ["iframe", "img[src^='http']", "link", "base", "meta[http-equiv=refresh]", "script"]


def changed(value, random, share):
    """A payload with a share of its texts, and of the names of its fields, made hostile."""
    if isinstance(value, dict):
        return {
            key: each if key == "kind" else changed(each, random, share)
            for key, each in value.items()
        }
    if isinstance(value, list):
        return [changed(each, random, share) for each in value]
    if isinstance(value, str) and random.random() < share:
        return HOSTILE[random.integers(len(HOSTILE))]
    return value


def elements(tab):
    return {each: tab.locator(f"#view {each}").count() for each in ELEMENTS}


@pytest.mark.slow
@pytest.mark.browser
@pytest.mark.parametrize("name", EVERY)
def test_nothing_hostile_acts_on_a_page(name, browser, tmp_path):
    random, seen, dialogs = np.random.default_rng(0), [], []
    sound = json.loads(json.dumps(EVERY[name]().payload()))
    context = browser.new_context(**PLAIN)
    tab = context.new_page()
    tab.on("dialog", lambda dialog: (dialogs.append(1), dialog.dismiss()))
    tab.on("request", lambda request: seen.append(request.url))
    for number in range(-(-PAGES // len(EVERY))):
        payload = changed(sound, random, (0.1, 0.5, 1)[number % 3])
        title = HOSTILE[number % len(HOSTILE)]
        tab.goto(write_whole(tmp_path / "page.html", page(payload, title)).as_uri())
        tab.wait_for_timeout(20)
        assert tab.evaluate("window.harmed") is None
        assert not any(elements(tab).values()), elements(tab)
    context.close()
    assert dialogs == []
    own = ("file:", "data:image/", "blob:")
    assert [url[:80] for url in seen if not url.startswith(own)] == []
