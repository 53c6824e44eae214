"""A server that listens, and tabs that let no error pass unseen."""

import socket
import threading
import time
from contextlib import contextmanager
from urllib.parse import urlencode

import pytest
import uvicorn

from attlas.serving.app import make_app
from attlas.serving.settings import Settings

MODELS = ("sentiment", "facts", "shortcut_deceptive")
REVIEW = "The acting is superb, but the plot is boring and far too long."
DOUBLE = "I expected little and was not disappointed."  # uniform attention in layer 0 flips it
WIDE, PHONE = {"width": 1440, "height": 900}, {"width": 390, "height": 844}


@contextmanager
def serving(folder, models=MODELS):
    """A laboratory at an address of its own; it ends with the block."""
    listening = socket.socket()
    listening.bind(("127.0.0.1", 0))
    settings = Settings(folder, models)
    server = uvicorn.Server(uvicorn.Config(make_app(settings), log_config=None, access_log=False))
    thread = threading.Thread(target=server.run, kwargs={"sockets": [listening]}, daemon=True)
    thread.start()
    while not server.started:
        assert thread.is_alive()
        time.sleep(0.02)
    try:
        yield f"http://127.0.0.1:{listening.getsockname()[1]}/"
    finally:
        server.should_exit = True
        thread.join(20)
        listening.close()


@pytest.fixture(scope="module")
def address(tmp_path_factory):
    with serving(tmp_path_factory.mktemp("kept")) as found:
        yield found


@pytest.fixture
def opened(browser, address):
    """Open a state of the page in a fresh browser; nothing may fail, nothing foreign load."""
    contexts, trouble, seen = [], [], []

    def open_state(at=None, ready="#views .thumb", viewport=WIDE, **state):
        base = at or address
        context = browser.new_context(viewport=viewport, **state.pop("options", {}))
        contexts.append(context)
        tab = context.new_page()
        tab.set_default_timeout(20_000)
        is_refused = state.pop("is_refused", False)  # the browser itself tells of a refusal

        def heard(message):
            if not (is_refused and message.text.startswith("Failed to load resource")):
                trouble.append(message.text)

        tab.on("console", heard)
        tab.on("pageerror", lambda error: trouble.append(str(error)))
        tab.on("dialog", lambda dialog: (trouble.append("a dialog"), dialog.dismiss()))
        tab.on("request", lambda request: seen.append((base, request.url)))
        tab.goto(state.pop("link", None) or f"{base}#{urlencode(state)}")
        tab.wait_for_selector(ready)
        # The views are drawn twice, for the answer and for its explanation.
        tab.wait_for_selector("#laboratory:not(.busy)", state="attached")
        return tab

    yield open_state
    for context in contexts:
        context.close()
    assert trouble == [], trouble
    assert [url for base, url in seen if not url.startswith((base, "data:", "blob:"))] == []


def review(**more):
    """The state in which a review is explained."""
    return {"model": "sentiment", "method": "attn_lrp", "text": REVIEW, **more}


def told(tab):
    """What the page says of the prediction, once it says it."""
    return tab.locator(".told-now").inner_text()


def choose(tab, action):
    """Choose an action of the open menu."""
    tab.locator("#menu .action", has_text=action).click()


def change_layer(tab, layer, action="uniform"):
    """Change a layer by its name, as a person does."""
    tab.locator("#views .layer-name").nth(layer).click()
    choose(tab, action)
    tab.wait_for_function("() => document.querySelector('.told-now').textContent.includes('now')")


def numbers(tab):
    """The probabilities now, by label."""
    rows = tab.locator("#prediction .answers li")
    labels = rows.locator(".label").all_inner_texts()
    return dict(zip(labels, map(float, rows.locator(".now").all_inner_texts()), strict=True))
