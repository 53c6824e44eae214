"""Draws the pictures of docs/gallery.md anew: `python scripts/gallery.py [NAME]...`.

A picture is one line of `PICTURES`: its name, what it shows, and what is done on the page before it
is taken. It needs playwright and a Chromium (`scripts/browser`).
"""

import sys
from collections.abc import Callable
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory
from typing import Any, NamedTuple

from playwright.sync_api import Page, sync_playwright

import attlas
from attlas.views import head_view, model_view

IMAGES = Path(__file__).parents[1] / "docs" / "images" / "gallery"
SENTENCE = "The acting is superb, but the plot is boring and far too long."
DATE = "March 3rd, 1987"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
WIDTH = 1200


def nothing(tab: Page) -> None:
    """Take the page as it opens."""


class Picture(NamedTuple):
    """One picture: `make` returns what has `to_html`, `part` is the element that is shown."""

    name: str
    make: Callable[[], Any]
    act: Callable[[Page], object] = nothing
    part: str = ".maps"
    scheme: str = "light"


def attention_of(model: str, text: str) -> tuple[list[Any], list[str]]:
    """The attention of a built-in model, as another library would hold it, and its tokens."""
    maps = attlas.explain(attlas.load(model), text, "raw_attention", maps=True).maps
    encoder = [array[None] for site, array in maps if site.kind == maps.sites[0].kind]
    return encoder, list(maps.query_tokens(0))


def lines() -> Any:
    return head_view(*attention_of("sentiment", SENTENCE), layer=1, heads=[0, 1, 2])


def model() -> Any:
    return model_view(*attention_of("sentiment", SENTENCE), display_mode="light")


def maps() -> Any:
    return attlas.explain(attlas.load("sentiment"), SENTENCE, "raw_attention", maps=True).maps


def point_at(selector: str, place: int) -> Callable[[Page], object]:
    return lambda tab: tab.locator(selector).nth(place).hover()


def open_head(tab: Page) -> None:
    canvas = tab.locator(".model canvas")
    canvas.focus()
    for key in ("Enter", "+", "+"):
        canvas.press(key)
        tab.wait_for_timeout(400)


PICTURES = (
    Picture("lines", lines),
    Picture("lines_of_a_token", lines, point_at(".lines .query .token", 4)),
    Picture("model", model),
    Picture("model_near", model, open_head),
    Picture("matrix", maps),
    Picture("matrix_dark", maps, scheme="dark"),
)


def main(names: list[str]) -> None:
    browser_path = next(filter(None, map(which, BROWSERS)), None)
    IMAGES.mkdir(exist_ok=True)
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
        for picture in PICTURES:
            if names and picture.name not in names:
                continue
            page = picture.make().to_html(Path(folder) / f"{picture.name}.html")
            viewport = {"width": WIDTH, "height": 1000}
            tab = browser.new_page(viewport=viewport, color_scheme=picture.scheme)
            tab.goto(page.resolve().as_uri())
            tab.wait_for_timeout(400)  # the small maps are drawn one after another
            picture.act(tab)
            tab.locator(picture.part).first.screenshot(path=IMAGES / f"{picture.name}.png")
            tab.close()
            print(IMAGES / f"{picture.name}.png")
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1:])
