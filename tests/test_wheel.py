"""The wheel, built and installed alone: nothing that a page or a model needs is missing."""

import subprocess
import sys
import zipfile
from pathlib import Path

import pytest

ROOT = Path(__file__).parent.parent
PIP = [sys.executable, "-m", "pip", "--quiet", "--disable-pip-version-check"]
USE = """
import attlas, sys
assert attlas.__file__.startswith(sys.argv[1]), attlas.__file__
from attlas.models.facts.places import embedded_names
assert len(embedded_names()) == 9, embedded_names()
for name in embedded_names():
    subject = attlas.load(name)
    assert subject.sites and attlas.check(subject).passed, name
assert len(attlas.texts("reviews")) == 160
assert len(attlas.texts("reviews_hard")) == 120
found = attlas.explain(attlas.load(), "a great film")
found.to_html(sys.argv[2])
print(found.target.name)
"""


@pytest.mark.slow
def test_the_wheel_explains_and_writes_a_page_by_itself(tmp_path):
    built, alone = tmp_path / "built", tmp_path / "alone"
    subprocess.run([*PIP, "wheel", "--no-deps", "-w", built, ROOT], check=True)
    (wheel,) = built.glob("attlas-*.whl")
    names = zipfile.ZipFile(wheel).namelist()
    for needed in ("py.typed", "views/browser/view.js", "views/browser/view.css"):
        assert f"attlas/{needed}" in names
    assert wheel.stat().st_size < 20 * 2**20
    subprocess.run([*PIP, "install", "--no-deps", "--target", alone, wheel], check=True)
    page = tmp_path / "page.html"
    done = subprocess.run(
        [sys.executable, "-c", USE, alone, page],
        cwd=tmp_path,
        env={"PYTHONPATH": str(alone), "PATH": "/usr/bin:/bin", "HF_HUB_OFFLINE": "1"},
        capture_output=True,
        text=True,
        check=True,
    )
    assert done.stdout.strip() == "POSITIVE"
    assert "</script>" in page.read_text()
