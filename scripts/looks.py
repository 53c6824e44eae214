"""Shows every kind of view in four looks: `python scripts/looks.py FOLDER [NAME]...`.

Wide and on a phone, each light and dark: one picture of each width, with the light page beside the
dark one. Printed is what no picture shows well: pages that scroll sideways, text that is cut off
and errors of the scripts. What a page shows is computed once and kept in FOLDER/pages; it is drawn
anew by each run. The live laboratory is among them. It needs playwright and a Chromium
(`scripts/browser`).
"""

import json
import re
import sys
from collections.abc import Callable
from contextlib import nullcontext
from functools import partial
from io import BytesIO
from pathlib import Path
from shutil import which
from typing import Any, NamedTuple

from laboratory_pictures import SCENES, served, used
from PIL import Image
from playwright.sync_api import Page, sync_playwright

import attlas
from attlas.views import head_view, model_view, page

HERE = Path(__file__).parents[1]
sys.path.insert(0, str(HERE / "tests"))

SENTENCE = "The acting is superb, but the plot is boring and far too long."
OTHER = "The acting is superb, and the plot is lively and never too long."
DATE = "March 3rd, 1987"
BROWSERS = ("chromium", "chromium-browser", "google-chrome")
WIDTHS = {"wide": {"width": 1280, "height": 900}, "phone": {"width": 390, "height": 844}}
TALLEST = 2600  # pixels of a page that are shown
PARTS = ("verdict", "curves", "agreement", "examples", "trials", "table")  # of a report
PAYLOAD = re.compile(r'<script type="application/json" id="payload">(.*?)</script>', re.DOTALL)
TOP = "(name) => document.querySelector(name).getBoundingClientRect().top + scrollY"
CUT = """() => [...document.querySelectorAll("main *")].filter((each) => {
    const style = getComputedStyle(each);
    const own = [...each.childNodes].some((node) => node.nodeType === 3 && node.data.trim());
    return own && each.clientWidth && style.overflowX !== "visible" && style.overflowX !== "auto"
        && style.overflowX !== "scroll" && each.scrollWidth > each.clientWidth + 1
        && style.visibility === "visible" && style.clipPath === "none" && each.clientWidth > 2;
}).map((each) => `${each.className || each.tagName}: ${each.textContent.slice(0, 50)}`)"""


class Look(NamedTuple):
    """One kind of view: what it shows, and what is done on the page before it is looked at."""

    make: Callable[[], Any]  # what has `to_html`
    act: Callable[[Page], object] = lambda tab: None
    start: str = "body"  # the element at which the picture begins


class Sample(NamedTuple):
    """A payload that no built-in model gives."""

    payload: dict[str, Any]

    def to_html(self, path: Path) -> None:
        path.write_text(page(self.payload, path.stem), encoding="utf-8")


def explained(text: str = SENTENCE, **options: Any) -> Any:
    return attlas.explain(attlas.load(), text, **options)


def attention() -> tuple[list[Any], list[str]]:
    maps = explained(method="raw_attention", maps=True).maps
    return [array[None] for _, array in maps], list(maps.query_tokens(0))


def a_sound() -> Any:
    import numpy
    import tiny

    own = attlas.Subject(*tiny.wave_subject("Wav2Vec2", "ForSequenceClassification"))
    times = numpy.arange(16_000) / 16_000
    sound = numpy.sin(6.28 * 300 * times * (1 + times)) * numpy.abs(numpy.sin(9 * times))
    return attlas.explain(own, (sound.astype("float32"), 16_000))


def a_picture() -> Any:
    from views import samples

    return Sample(samples.photograph())


def a_caption() -> Any:
    from views import samples

    return Sample(samples.captioned())


def a_study() -> Any:
    from attlas.results import StudyResult

    kept = HERE / "docs" / "studies" / "results" / "jain_wallace.json"
    return StudyResult.from_dict(json.loads(kept.read_text("utf-8")))


def pressed(name: str) -> Callable[[Page], object]:
    """Press the first button of this name, if the page has it."""
    return lambda tab: tab.get_by_role("button", name=name, exact=True).first.click()


def unfolded(tab: Page) -> None:
    """Open everything that is folded."""
    tab.evaluate("document.querySelectorAll('details').forEach((each) => { each.open = true; })")


def a_report() -> Any:
    kept = (HERE / "docs" / "audits" / "minilm_sst2.html").read_text("utf-8")
    return Sample(payload_of(kept))


def raw_maps() -> Any:
    return explained(method="raw_attention", maps=True).maps


def audited() -> Any:
    return attlas.audit(attlas.load(), "reviews", quick=True)


LOOKS: dict[str, Look] = {
    "explanation": Look(lambda: explained()),
    "explanation_maps": Look(lambda: explained(method="gradient_attention", maps=True)),
    "explanation_pair": Look(
        lambda: attlas.explain(attlas.load("facts"), attlas.texts("facts", count=1)[0].text)
    ),
    "explanation_picture": Look(a_picture),
    "explanation_contours": Look(a_picture, pressed("contours")),
    "explanation_caption": Look(a_caption),
    "explanation_sound": Look(a_sound),
    "comparison": Look(
        lambda: attlas.compare(
            [explained(method=each) for each in ("attn_lrp", "raw_attention", "gradient")]
        )
    ),
    "comparison_texts": Look(lambda: attlas.compare([explained(), explained(OTHER)])),
    "generation": Look(
        lambda: attlas.explain_generation(attlas.load("dates"), DATE, max_new_tokens=10)
    ),
    "generation_words": Look(
        lambda: attlas.explain_generation(attlas.load("dates"), DATE, max_new_tokens=10),
        pressed("words"),
    ),
    "maps": Look(raw_maps),
    "maps_lines": Look(raw_maps, pressed("lines")),
    "maps_model": Look(raw_maps, pressed("model")),
    "maps_flow": Look(raw_maps, unfolded),
    "head_view": Look(lambda: head_view(*attention(), layer=1, heads=[0, 1, 2])),
    "model_view": Look(lambda: model_view(*attention(), display_mode="light")),
    "heads": Look(lambda: attlas.head_importance(attlas.load(), "reviews", count=12)),
    "redundancy": Look(lambda: attlas.head_redundancy(attlas.load(), "reviews", count=12)),
    "prune_curve": Look(
        lambda: attlas.prune_curve(attlas.load(), "reviews", count=24, by=["attattr", "random"])
    ),
    "tree": Look(lambda: attlas.attribution_tree(attlas.load(), SENTENCE)),
    "triggers": Look(lambda: attlas.triggers(attlas.load(), "reviews", candidates=24)),
    "triggers_classes": Look(
        lambda: attlas.triggers(attlas.load(), "reviews", candidates=24), unfolded
    ),
    "judgement": Look(lambda: attlas.judge(attlas.load(), explained())),
    "trial": Look(lambda: attlas.try_trial(attlas.load(), "reviews", "permutation", count=12)),
    "check": Look(lambda: attlas.check(attlas.load())),
    "study": Look(a_study),
    "study_claims": Look(a_study, unfolded),
    "report": Look(audited),
    "report_findings": Look(audited, unfolded),
    **{f"report_{name}": Look(a_report, unfolded, f"#attlas-{name}") for name in PARTS},
}


def redrawn(file: Path, make: Callable[[], Any]) -> None:
    """Make a page if it is not kept, and draw it as the views are now."""
    if not file.exists():
        file.parent.mkdir(parents=True, exist_ok=True)
        make().to_html(file)
    Sample(payload_of(file.read_text("utf-8"))).to_html(file)


def payload_of(written: str) -> dict[str, Any]:
    """What a saved page shows."""
    found = PAYLOAD.search(written)
    assert found is not None
    shown: dict[str, Any] = json.loads(found[1])
    return shown


def looked_at(opened: Callable[[str, str, list[str]], Page], picture: Path, start: str) -> None:
    """Photograph a page in four looks, and tell what is wrong in each."""
    for width in WIDTHS:
        shots = []
        for scheme in ("light", "dark"):
            said: list[str] = []
            tab = opened(width, scheme, said)
            across = tab.evaluate("document.documentElement.scrollWidth - innerWidth")
            said += [f"scrolls sideways by {across}"] * (across > 0)
            said += [f"cut off: {each}" for each in tab.evaluate(CUT)]
            for each in said:
                print(f"{picture.stem}, {width}, {scheme}: {each}")
            top = tab.evaluate(TOP, start)
            tall = min(tab.evaluate("document.documentElement.scrollHeight") - top, TALLEST)
            clip = {"x": 0, "y": top, "width": WIDTHS[width]["width"], "height": tall}
            shots.append(tab.screenshot(full_page=True, clip=clip))
            tab.close()
        side_by_side(shots).save(picture.with_name(f"{picture.stem}_{width}.png"))
    print(f"{picture.stem}: seen", flush=True)


def opened_page(browser: Any, file: Path, look: Look, width: str, scheme: str, said: Any) -> Page:
    """A saved page, after what is done on it; `said` gets what its scripts complain of."""
    tab: Page = browser.new_page(viewport=WIDTHS[width], color_scheme=scheme)
    tab.on("pageerror", lambda error: said.append(f"error: {error}"))
    tab.on("console", lambda message: said.append(f"console: {message.text}"))
    tab.goto(file.resolve().as_uri())
    tab.wait_for_selector("footer")
    look.act(tab)
    tab.wait_for_timeout(600)  # small maps are drawn one after another
    return tab


def opened_scene(browser: Any, address: str, name: str, width: str, scheme: str, said: Any) -> Page:
    """The live laboratory, after what a scene does there."""
    tab: Page = used(browser, address, name, WIDTHS[width], scheme)
    return tab


def side_by_side(shots: list[bytes]) -> Image.Image:
    """Pictures in one row."""
    opened = [Image.open(BytesIO(shot)).convert("RGB") for shot in shots]
    size = sum(each.width for each in opened) + 8, max(each.height for each in opened)
    sheet = Image.new("RGB", size, "#808080")
    place = 0
    for each in opened:
        sheet.paste(each, (place, 0))
        place += each.width + 8
    return sheet


def main(folder: Path, names: list[str]) -> None:
    known = (*LOOKS, *SCENES)
    unknown = set(names) - set(known)
    if unknown:
        raise SystemExit(f"unknown view {min(unknown)!r}: allowed: {', '.join(known)}")
    chosen = names or known
    pages = {name: folder / "pages" / f"{name}.html" for name in chosen if name in LOOKS}
    for name, file in pages.items():
        redrawn(file, LOOKS[name].make)
    scenes = [name for name in chosen if name in SCENES]
    live = served(folder / "laboratory") if scenes else nullcontext("")
    browser_path = next(filter(None, map(which, BROWSERS)), None)
    with sync_playwright() as playwright, live as address:
        browser = playwright.chromium.launch(executable_path=browser_path, args=["--no-sandbox"])
        for name, file in pages.items():
            opened = partial(opened_page, browser, file, LOOKS[name])
            looked_at(opened, folder / f"{name}.png", LOOKS[name].start)
        for name in scenes:
            looked_at(partial(opened_scene, browser, address, name), folder / f"{name}.png", "body")
        browser.close()


if __name__ == "__main__":
    main(Path(sys.argv[1]), sys.argv[2:])
