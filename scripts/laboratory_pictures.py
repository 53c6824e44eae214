"""The pictures of the live laboratory: its page is used as a person uses it."""

import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any
from urllib.parse import urlencode

REVIEW = "The acting is superb, but the plot is boring and far too long."
DOUBLE = "I expected little and was not disappointed."
WIDE, PHONE = {"width": 1440, "height": 900}, {"width": 390, "height": 844}
LONG = 300_000  # milliseconds: a search on a busy machine


def state(text: str, method: str = "attn_lrp", **more: str) -> str:
    """The end of an address that opens a text."""
    return urlencode({"model": "sentiment", "method": method, "text": text, **more})


def flipped(tab: Any) -> None:
    """Uniform attention in the first layer flips the prediction; the menu of a weight is open."""
    tab.wait_for_selector("#views .thumb")
    tab.locator("#views .layer-name").first.click()
    tab.locator("#menu .action", has_text="uniform").click()
    tab.wait_for_selector("#prediction .flip")
    tab.locator("#views .thumb").nth(11).click()
    canvas = tab.locator("#views .matrix canvas")
    side = canvas.bounding_box()["width"]
    canvas.click(position={"x": 0.95 * side, "y": 0.25 * side})
    tab.wait_for_selector("#menu:visible")


def searched(tab: Any) -> None:
    """Another attention with the same prediction, beside the model's own."""
    tab.wait_for_selector("#views .thumb")
    tab.locator(".search-button").first.click()
    tab.wait_for_selector(".put-in", timeout=LONG)
    tab.mouse.move(700, 5)


def removed(tab: Any) -> None:
    """Words are taken away by hand, beside other orders."""
    tab.wait_for_selector("#tokens .unit")
    for word in ("but", "boring", "long", "too", "far"):
        tab.locator("#tokens .unit", has_text=word).first.click()
        tab.wait_for_selector("#prediction .without")
    tab.wait_for_selector("#removal .plot-line.best", timeout=LONG)
    tab.mouse.move(700, 5)


def toured(tab: Any) -> None:
    """The step of the tour at which a better reading finds the word."""
    tab.wait_for_selector(".compare-body .compared .one")
    tab.wait_for_selector("#tokens .unit")


def handheld(tab: Any) -> None:
    """The flip on a phone."""
    tab.wait_for_selector("#prediction .flip")
    tab.wait_for_selector("#views .thumb")


UNIFORM = '[{"label":"layer 0: uniform","edits":[{"action":"uniform","layer":0}]}]'
TOUR = (
    "model=shortcut_deceptive&method=raw_attention&tab=compare&tour=9&"
    + urlencode({"against": '["method","attn_lrp"]'})
    + "&text=in+a+week+the+wide+bench+cobalt+reached+the+round+tower"
    "+in+a+week+the+broad+mill+faced+the+narrow+ladder"
)
# By the name of the file: the state, what is done there, the screen and its colours.
SCENES: dict[str, tuple[str, Callable[[Any], None], dict[str, int], str]] = {
    "laboratory": (state(DOUBLE), flipped, WIDE, "light"),
    "laboratory_search": (state(REVIEW), searched, WIDE, "light"),
    "laboratory_removal": (state(REVIEW, "attention_rollout"), removed, WIDE, "dark"),
    "laboratory_tour": (TOUR, toured, WIDE, "light"),
    "laboratory_phone": (state(DOUBLE, did=UNIFORM), handheld, PHONE, "dark"),
}


@contextmanager
def served(folder: Path) -> Iterator[str]:
    """The address of a laboratory that ends with the block."""
    command = [sys.executable, "-m", "attlas", "serve", "--port", "0", "--keep", str(folder)]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as server:
        assert server.stdout is not None
        for line in server.stdout:
            found = re.search(r"http://\S+", line)
            if found:
                break
        else:
            raise SystemExit("attlas serve did not start")
        try:
            yield found[0]
        finally:
            server.terminate()


def photograph(browser: Any, address: str, name: str, picture: Path) -> Path:
    """Use the page as the scene says, and take its picture."""
    _, _, viewport, scheme = SCENES[name]
    tab = used(browser, address, name, viewport, scheme)
    tab.screenshot(path=picture)
    tab.close()
    return picture


def used(browser: Any, address: str, name: str, viewport: dict[str, int], scheme: str) -> Any:
    """The page on a screen of this size, after what the scene does there."""
    at, act, *_ = SCENES[name]
    tab = browser.new_page(viewport=viewport, color_scheme=scheme, reduced_motion="reduce")
    tab.set_default_timeout(LONG)
    tab.goto(f"{address}#{at}")
    act(tab)
    tab.wait_for_timeout(800)  # until everything is drawn
    return tab
