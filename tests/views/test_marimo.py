"""The widget in marimo: a head that is chosen in the browser is known in Python.

marimo is no dependency of the tests: it takes 190 MB. Where it is installed, this runs.
"""

import re
import socket
import subprocess
import sys
import time
from urllib.error import URLError
from urllib.request import urlopen

import pytest
from results.every_result import EVERY

pytest.importorskip("marimo")
pytestmark = [pytest.mark.browser, pytest.mark.slow]

APP = """
import marimo

app = marimo.App()


@app.cell
def _():
    import marimo as mo
    from attlas.results import Explanation

    held = mo.ui.anywidget(Explanation.load({path!r}).widget())
    held
    return held, mo


@app.cell
def _(held, mo):
    mo.md(f"Python knows layer {{held.widget.layer}}, head {{held.value['state'].get('head')}}")
    return


if __name__ == "__main__":
    app.run()
"""


@pytest.fixture
def address(tmp_path):
    """Where an app with the widget of an explanation is served."""
    path = EVERY["Explanation"]().save(tmp_path / "result.attlas")
    (tmp_path / "app.py").write_text(APP.format(path=str(path)))
    with socket.socket() as found:
        found.bind(("127.0.0.1", 0))
        port = found.getsockname()[1]
    command = [sys.executable, "-m", "marimo", "--quiet", "run", str(tmp_path / "app.py")]
    server = subprocess.Popen([*command, "--headless", "--port", str(port), "--no-token"])
    try:
        yield _answering(f"http://127.0.0.1:{port}")
    finally:
        server.terminate()
        server.wait(20)


def _answering(address):
    for _ in range(120):
        try:
            urlopen(address, timeout=5).close()
            return address
        except (URLError, OSError):
            time.sleep(0.5)
    raise AssertionError("marimo did not start")


def test_a_head_chosen_in_marimo_is_known_in_python(browser, address):
    tab = browser.new_page()
    tab.goto(address)
    thumbs = tab.locator(".attlas .thumb")
    thumbs.last.wait_for(timeout=60_000)
    for thumb in (thumbs.last, thumbs.first):
        title = thumb.get_attribute("title")  # such as "layer 1 · head 2", or "cross.1 · …"
        layer, head = re.findall(r"\d+", title)
        thumb.click()
        told = f"Python knows layer {layer}, head {head}"
        tab.get_by_text(told).wait_for(timeout=30_000)
    tab.close()
