"""A way to open payloads in a browser that lets nothing pass unseen."""

import pytest

from attlas.views import page, write_whole

PLAIN = {"viewport": {"width": 1280, "height": 900}, "offline": True}


@pytest.fixture
def show(browser, tmp_path):
    """Open a payload as a saved page, with the network off; see that nothing loads or fails."""
    contexts, trouble = [], []

    def open_page(payload, address="", **options):
        path = write_whole(tmp_path / "page.html", page(payload, "a title"))
        context = browser.new_context(**{**PLAIN, **options})
        contexts.append(context)
        tab = context.new_page()
        tab.on("console", lambda message: trouble.append(message.text))
        tab.on("pageerror", lambda error: trouble.append(str(error)))
        tab.on("dialog", lambda dialog: (trouble.append("a dialog"), dialog.dismiss()))
        tab.on("request", lambda request: seen.append(request.url))
        tab.goto(path.as_uri() + address)
        tab.wait_for_selector("footer")
        return tab

    seen: list[str] = []
    yield open_page
    for context in contexts:
        context.close()
    assert trouble == []
    assert [url for url in seen if not url.startswith(("file:", "data:", "blob:"))] == []
