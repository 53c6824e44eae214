"""axe-core finds no serious fault on a page of any kind, light or dark, wide or on a phone."""

import subprocess
from pathlib import Path

import pytest
from results import report_sample
from results.every_result import EVERY
from views import samples

pytestmark = pytest.mark.browser

ROOT = Path(__file__).parents[2]
PAGES = {
    **{name: lambda name=name: EVERY[name]().payload() for name in EVERY},
    "film": samples.film,
    "pair": samples.pair,
    "photograph": samples.photograph,
    "captioned": samples.captioned,
    "generation": samples.generation,
    "Report": lambda: report_sample.report().payload(),
}
WIDE, PHONE = {"width": 1280, "height": 900}, {"width": 390, "height": 844}
FAULTS = """async () => {
    const found = await axe.run(document, {resultTypes: ["violations"]});
    return found.violations.filter((each) => ["serious", "critical"].includes(each.impact))
        .flatMap((each) => each.nodes.map((node) =>
            `${each.id}: ${node.html.slice(0, 160)}: ${node.any.map((one) => one.message)}`));
}"""


@pytest.fixture(scope="session")
def axe():
    """The checker, from npm; `make test` has installed it."""
    subprocess.run([ROOT / "scripts" / "packages"], check=True)
    return (ROOT / "node_modules" / "axe-core" / "axe.min.js").read_text("utf-8")


def faults(tab, axe):
    tab.evaluate(axe)
    return tab.evaluate(FAULTS)


@pytest.mark.parametrize(("scheme", "viewport"), [("light", WIDE), ("dark", PHONE)])
@pytest.mark.parametrize("name", PAGES)
def test_a_page_has_no_serious_fault(show, axe, name, scheme, viewport):
    assert faults(show(PAGES[name](), color_scheme=scheme, viewport=viewport), axe) == []


@pytest.mark.slow
@pytest.mark.parametrize(("scheme", "viewport"), [("dark", WIDE), ("light", PHONE)])
@pytest.mark.parametrize("name", PAGES)
def test_nor_in_the_other_looks(show, axe, name, scheme, viewport):
    assert faults(show(PAGES[name](), color_scheme=scheme, viewport=viewport), axe) == []


def test_a_fault_would_be_found(show, axe):
    tab = show(samples.film())
    tab.evaluate("document.querySelector('.switch').textContent = ''")
    assert any(fault.startswith("button-name") for fault in faults(tab, axe))


def test_a_table_wider_than_the_page_can_be_scrolled_by_keyboard(show):
    payload = EVERY["Judgement"]().payload()
    wide, phone = show(payload, viewport=WIDE), show(payload, viewport=PHONE)
    assert wide.locator(".judgement .scroll").get_attribute("tabindex") is None
    box = phone.locator(".judgement .scroll")
    assert box.get_attribute("aria-label") == "Measures"
    box.focus()
    for _ in range(3):
        phone.keyboard.press("ArrowRight")
    for _ in range(100):  # it scrolls smoothly; the page's policy forbids to wait by a script
        if box.evaluate("each => each.scrollLeft"):
            return
        phone.wait_for_timeout(20)
    raise AssertionError("the arrow keys do not scroll the table")
