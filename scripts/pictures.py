"""Draws the README's pictures from the present state: `python scripts/pictures.py`.

It explains and audits with the built-in models, and photographs the pages that come of it. It needs
playwright and a Chromium (`scripts/browser`).
"""

from collections.abc import Iterator
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory

from playwright.sync_api import sync_playwright

import attlas

IMAGES = Path(__file__).parents[1] / "docs" / "images"
SENTENCE = "The acting is superb, but the plot is boring and far too long."
DATE = "March 3rd, 1987"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")


def pages() -> Iterator[tuple[str, attlas.Explanation | attlas.Generation | attlas.Report, int]]:
    """The name of each picture, the result that it shows, and its height."""
    subject = attlas.load()
    yield "explanation", attlas.explain(subject, SENTENCE), 690
    written = attlas.explain_generation(attlas.load("dates"), DATE, max_new_tokens=10)
    yield "generation", written, 1210
    yield "report", attlas.audit(subject, "reviews", quick=True), 900


def main() -> None:
    browser_path = next(filter(None, map(which, BROWSERS)), None)
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
        for name, result, height in pages():
            page = result.to_html(Path(folder) / f"{name}.html")
            tab = browser.new_page(viewport={"width": 1280, "height": height})
            tab.goto(page.resolve().as_uri())
            if name == "generation":
                tab.get_by_role("button", name="tokens", exact=True).click()
            tab.screenshot(path=IMAGES / f"{name}.png")
            tab.close()
            print(IMAGES / f"{name}.png")
        browser.close()


if __name__ == "__main__":
    main()
