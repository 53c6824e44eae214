"""Pages of attention against BertViz: bytes, seconds to build, first picture, frames a second.

    python benchmarks/views.py [--small]

Both get the same attention: softmaxes of random numbers, which pack badly; the attention of a
model takes less. BertViz is compared where it is installed (`pip install bertviz`). The first
picture is there when the page shows its first heads; frames are counted while the whole model is
zoomed to one weight and back. Chromium draws without a graphics card, as on a plain server. On a
machine with other work, the seconds of the processor say more than those of the clock; who builds
faster is judged by them, those of all threads together, the best of some rounds in turn.
"""

import argparse
import shutil
import sys
import tempfile
import time
from collections.abc import Callable, Iterator
from dataclasses import dataclass
from importlib.util import find_spec
from pathlib import Path

import torch
from playwright.sync_api import Browser, Page, sync_playwright

from attlas.views import head_view, model_view

SHAPES = ((12, 12, 128), (32, 32, 128))
LONG = 4096
GOALS = {
    (12, 12, 128): {"bytes": 3e6},
    (32, 32, 128): {"bytes": 20e6, "picture": 2.0, "frames": 30},
}
LONG_GOAL = 1.0  # seconds
FASTER = 50  # times, to build the first of the shapes
BROWSERS = ("chromium", "chromium-browser", "google-chrome")

# Zoom in over two seconds and out again, a wheel event in each frame; the frames a second.
ZOOM = """async () => {
    const canvas = document.querySelector('.model canvas');
    const frame = () => new Promise(requestAnimationFrame);
    canvas.focus();
    const box = canvas.getBoundingClientRect();
    const place = {clientX: box.x + box.width * 0.4, clientY: box.y + box.height * 0.4,
        bubbles: true, cancelable: true};
    const times = [await frame()];
    for (const way of [-1, 1])
        while (times.at(-1) - times[0] < (way < 0 ? 2000 : 4000)) {
            canvas.dispatchEvent(new WheelEvent('wheel', {...place, deltaY: 12 * way}));
            times.push(await frame());
        }
    return 1000 * (times.length - 1) / (times.at(-1) - times[0]); }"""

# The lines were of the second head: the small pictures of the matrix view unpack the first one.
DRAW = """async () => {
    const frame = () => new Promise(requestAnimationFrame), start = performance.now();
    [...document.querySelectorAll('.maps .choice button')].find(
        each => each.textContent === 'matrix').click();
    await frame();
    await frame();
    return performance.now() - start; }"""


@dataclass(frozen=True)
class Built:
    """A page, and the seconds of the clock and of the processor that it took."""

    page: str
    clock: float
    used: float


def attention(layers: int, heads: int, size: int) -> tuple[torch.Tensor, ...]:
    drawn = torch.Generator().manual_seed(0)
    return tuple(
        torch.randn(1, heads, size, size, generator=drawn).softmax(-1) for _ in range(layers)
    )


def built(
    given: tuple[torch.Tensor, ...], tokens: list[str], rounds: int, peered: bool
) -> tuple[Built, Built | None]:
    """The page of Attlas and, where asked for and installed, that of BertViz, built in turn."""
    own, other = [], []
    for _ in range(rounds):
        own += [timed(lambda: model_view(given, tokens).data) for _ in range(5)]
        if peered and find_spec("bertviz") is not None:
            other.append(timed(lambda: bertviz_page(given, tokens)))
    return best(own), best(other) if other else None


def timed(work: Callable[[], str]) -> Built:
    start, used = time.perf_counter(), time.process_time()
    page = work()
    return Built(page, time.perf_counter() - start, time.process_time() - used)


def best(rounds: list[Built]) -> Built:
    return Built(
        rounds[0].page, min(each.clock for each in rounds), min(each.used for each in rounds)
    )


def bertviz_page(given: tuple[torch.Tensor, ...], tokens: list[str]) -> str:
    from bertviz import model_view as peer

    return str(peer(given, tokens, html_action="return").data)


def opened(browser: Browser, path: Path, ready: str) -> tuple[float, float, Page]:
    """The seconds from opening a page until it has an element, those of the processor, the page."""
    tab = browser.new_page(viewport={"width": 1280, "height": 900})
    before, start = busy(browser), time.perf_counter()
    tab.goto(path.as_uri())
    tab.wait_for_selector(ready, state="attached")
    taken = time.perf_counter() - start
    return taken, busy(browser) - before, tab


def busy(browser: Browser) -> float:
    """Seconds of the processor that the processes which draw pages have used."""
    found = browser.new_browser_cdp_session().send("SystemInfo.getProcessInfo")["processInfo"]
    return float(sum(each["cpuTime"] for each in found if each["type"] == "renderer"))


def in_seconds(taken: float, worked: float) -> str:
    return f"{taken:.3g} s ({worked:.3g} s of the processor)"


def rows(browser: Browser, folder: Path, small: bool) -> Iterator[list[str]]:
    for layers, heads, size in SHAPES[: 1 if small else None]:
        yield from shape_rows(browser, folder, (layers, heads, size))
    yield from long_rows(browser, folder)


def shape_rows(browser: Browser, folder: Path, shape: tuple[int, int, int]) -> Iterator[list[str]]:
    layers, heads, size = shape
    name, goal = " × ".join(map(str, shape)), GOALS[shape]
    given, tokens = attention(*shape), [f"token{i}" for i in range(size)]
    own, peer = built(given, tokens, 4, peered=shape == SHAPES[0])
    page, other = own.page, peer.page if peer else None
    ratios = [len(other) / len(page), peer.used / own.used] if peer else []
    yield [
        name,
        "bytes",
        f"{len(page) / 1e6:.2f} MB",
        f"{len(other) / 1e6:.1f} MB" if other else "",
        f"{ratios[0]:.0f} ×" if ratios else "",
        judged(len(page), goal, "bytes", 1e6),
    ]
    yield [
        name,
        "build",
        in_seconds(own.clock, own.used),
        in_seconds(peer.clock, peer.used) if peer else "",
        f"{ratios[1]:.0f} ×" if ratios else "",
        faster(ratios[1]) if ratios else "",
    ]
    path = folder / "model.html"
    path.write_text(page)
    first = '.model canvas[data-drawn]:not([data-drawn="0"])'
    taken, worked, tab = opened(browser, path, first)
    tab.close()
    yield [
        name,
        "first picture",
        in_seconds(taken, worked),
        *peer_picture(browser, folder, other),
        judged(taken, goal, "picture"),
    ]
    taken, worked, tab = opened(browser, path, f'.model canvas[data-drawn="{layers * heads}"]')
    yield [name, "all heads", in_seconds(taken, worked), "", "", ""]
    frames = tab.evaluate(ZOOM)
    tab.close()
    least = goal.get("frames")
    yield [
        name,
        "frames a second",
        f"{frames:.0f}",
        "",
        "",
        f"at least {least}: {'reached' if frames >= least else 'NOT REACHED'}" if least else "",
    ]


def peer_picture(browser: Browser, folder: Path, peer: str | None) -> list[str]:
    """BertViz loads its libraries from the network; without them it draws nothing."""
    if peer is None:
        return ["", ""]
    path = folder / "peer.html"
    path.write_text(f"<!doctype html><meta charset=utf-8><body>{peer}")
    tab = browser.new_page(viewport={"width": 1280, "height": 900})
    start = time.perf_counter()
    try:
        tab.goto(path.as_uri(), timeout=30_000)
        tab.wait_for_selector("svg line, svg path", timeout=30_000, state="attached")
        return [f"{time.perf_counter() - start:.2f} s", ""]
    except Exception as problem:
        return [f"none in 30 s ({type(problem).__name__})", ""]
    finally:
        tab.close()


def long_rows(browser: Browser, folder: Path) -> Iterator[list[str]]:
    """A head over thousands of tokens: the page opened, and a head unpacked and drawn on it."""
    given, tokens = attention(2, 1, LONG), [f"token{i}" for i in range(LONG)]
    shown, name = head_view(given, tokens, layer=1), f"{LONG} × {LONG} head"
    path = shown.to_html(folder / "long.html")
    taken, worked, tab = opened(browser, path, ".lines canvas")
    yield [name, "page of two, opened", in_seconds(taken, worked), "", "", ""]
    before = busy(browser)
    seconds = tab.evaluate(DRAW) / 1000
    worked = busy(browser) - before
    tab.close()
    goal = f"at most {LONG_GOAL:g} s: {'reached' if seconds <= LONG_GOAL else 'NOT REACHED'}"
    yield [name, "drawn", in_seconds(seconds, worked), "", "", goal]


def faster(ratio: float) -> str:
    return f"at least {FASTER} ×: {'reached' if ratio >= FASTER else 'NOT REACHED'}"


def judged(value: float, goal: dict[str, float], name: str, unit: float = 1) -> str:
    if name not in goal:
        return ""
    reached = "reached" if value <= goal[name] else "NOT REACHED"
    return f"at most {goal[name] / unit:g}{' MB' if unit > 1 else ' s'}: {reached}"


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__.splitlines()[0])
    parser.add_argument("--small", action="store_true", help="only 12 × 12 × 128")
    given = parser.parse_args()
    path = next(filter(None, map(shutil.which, BROWSERS)), None)
    if path is None:
        print(f"no Chromium found (looked for {', '.join(BROWSERS)})", file=sys.stderr)
        return 1
    missed = 0
    with tempfile.TemporaryDirectory() as folder, sync_playwright() as session:
        browser = session.chromium.launch(executable_path=path, args=["--no-sandbox"])
        print(
            "| page | what | Attlas | BertViz | ratio | goal |\n|---|---|---|---|---|---|",
            flush=True,
        )
        for row in rows(browser, Path(folder), given.small):
            print(f"| {' | '.join(row)} |", flush=True)
            missed += "NOT REACHED" in row[-1]
        browser.close()
    return missed


if __name__ == "__main__":
    sys.exit(main())
