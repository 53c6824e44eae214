"""What holds for all tests."""

import gc
import os
import shutil

import checked_types  # noqa: F401 - before the first import of Attlas
import pytest

import attlas.progress

gc.disable()  # until all is imported: what is imported stays


def pytest_collection_finish():
    """What was imported stays until the end: no search for garbage looks at it again."""
    gc.collect()
    gc.freeze()
    gc.enable()


@pytest.fixture(autouse=True, scope="session")
def records(tmp_path_factory):
    """Audits leave their records in a folder of the tests, also those of other processes."""
    os.environ["ATTLAS_AUDITS"] = str(tmp_path_factory.mktemp("records"))


@pytest.fixture(autouse=True)
def patience(monkeypatch):
    """No test depends on how busy the machine is: signs of life come after an hour."""
    monkeypatch.setattr(attlas.progress, "FIRST", 3600.0)


@pytest.fixture(scope="module")
def browser():
    """A browser for the tests of a file; playwright bears one at a time in a process."""
    names = ("chromium", "chromium-browser", "google-chrome")
    path = next(filter(None, map(shutil.which, names)), None)
    if path is None:
        pytest.skip(f"no Chromium found (looked for {', '.join(names)})")
    playwright = pytest.importorskip("playwright.sync_api", reason="playwright is not installed")
    with playwright.sync_playwright() as session:
        opened = session.chromium.launch(executable_path=path, args=["--no-sandbox"])
        yield opened
        opened.close()
