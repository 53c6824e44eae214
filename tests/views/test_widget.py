"""The widget of a notebook: what it sends and hears, and what is shown where no widget runs."""

import base64
import json
import subprocess
import sys

import nbclient
import nbformat
import pytest
from results.every_result import EVERY
from views import samples

from attlas.errors import UnknownNameError, UsageError
from attlas.views import fragment
from attlas.views.page import view_script
from attlas.views.widget import Widget

MIME = "application/vnd.jupyter.widget-view+json"


@pytest.mark.parametrize("name", EVERY)
def test_every_result_has_a_widget_with_its_payload(name):
    result = EVERY[name]()
    widget = result.widget()
    sent = json.loads(
        json.dumps(widget.payload, default=lambda each: base64.b64encode(each).decode())
    )
    assert sent == json.loads(json.dumps(result.payload()))
    assert widget._repr_mimebundle_()[0]["text/html"] == fragment(result.payload())
    widget.close()


def test_maps_travel_as_bytes():
    given = samples.film()
    widget = Widget(given)
    sent, held = widget.payload["maps"]["sites"][0]["data"], given["maps"]["sites"][0]["data"]
    assert sent == base64.b64decode(held)
    widget.close()


def test_a_payload_of_an_unknown_kind_is_refused():
    with pytest.raises(UnknownNameError, match="unknown kind of payload"):
        Widget({"kind": "explanaton"})


def test_without_anywidget_one_line_says_what_to_install(monkeypatch):
    monkeypatch.setitem(sys.modules, "attlas.views.widget", None)
    with pytest.raises(UsageError, match=r"pip install 'attlas\[notebook\]'"):
        EVERY["Explanation"]().widget()


def test_results_do_not_bring_in_anywidget():
    code = "import attlas.results, sys; print({'anywidget', 'ipywidgets'} & set(sys.modules))"
    shown = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=True)
    assert shown.stdout.strip() == "set()"


@pytest.fixture
def notebook(tmp_path):
    """Run cells in a kernel, and send it what a notebook would send."""
    made = nbformat.v4.new_notebook()
    client = nbclient.NotebookClient(made, timeout=60, kernel_name="python3")

    def run(source):
        cell = nbformat.v4.new_code_cell(source)
        made.cells.append(cell)
        client.execute_cell(cell, len(made.cells) - 1)
        return cell.outputs

    def send(model_id, state):
        data = {"method": "update", "state": state, "buffer_paths": []}
        message = client.kc.session.msg("comm_msg", {"comm_id": model_id, "data": data})
        client.kc.shell_channel.send(message)

    with client.setup_kernel():
        yield run, send


# Kernels on some systems warn of the event loop or of frozen modules; that is not about Attlas.
@pytest.mark.filterwarnings("default")
def test_a_kernel_and_a_notebook_share_the_state(notebook, tmp_path):
    run, send = notebook
    result = EVERY["Explanation"]()
    path = result.save(tmp_path / "result.attlas")
    (shown,) = run(
        f"from attlas.results import Explanation\nw = Explanation.load({str(path)!r}).widget()\nw"
    )
    assert {MIME, "text/html", "text/plain"} <= set(shown["data"])
    assert shown["data"]["text/html"] == fragment(result.payload())
    model_id = shown["data"][MIME]["model_id"]
    run("heard = []\nw.observe(lambda change: heard.append(change.new), 'state')")
    send(model_id, {"state": {"layer": 1, "head": 0, "token": 2}})
    (told,) = run("print(w.layer, w.head, w.token, w.row, len(heard))")
    assert told["text"].split() == ["1", "0", "2", "None", "1"]
    run("w.head = 1")
    (told,) = run("print(w.state)")
    assert told["text"].strip() == "{'layer': 1, 'head': 1, 'token': 2}"


MODEL = """
async ([source, payload, state]) => {
    const url = URL.createObjectURL(new Blob([source], {type: "text/javascript"}));
    const module = await import(url);
    for (const site of payload.maps.sites) {
        const held = Uint8Array.from([0, ...site.data, 0]);
        site.data = new DataView(held.buffer, 1, site.data.length);
    }
    const held = {payload, state}, listeners = {};
    window.saved = [];
    window.model = {
        get: (name) => held[name],
        set: (name, value) => {
            held[name] = value;
            for (const each of listeners[`change:${name}`] ?? []) each();
        },
        save_changes: () => window.saved.push(structuredClone(held.state)),
        on: (name, listener) => { (listeners[name] ??= []).push(listener); },
        off: (name, listener) => {
            listeners[name] = listeners[name].filter((each) => each !== listener);
        },
    };
    const element = document.createElement("div");
    document.body.append(element);
    window.stop = module.default.render({model: window.model, el: element});
    window.listeners = listeners;
}
"""


@pytest.fixture
def widget(browser):
    """A page that draws the film as a notebook does, with buffers and a model of its own."""
    tabs = []

    def draw(state):
        widget = Widget(samples.film())
        payload = {**widget.payload, "maps": {**widget.payload["maps"]}}
        payload["maps"]["sites"] = [
            {**site, "data": list(site["data"])} for site in payload["maps"]["sites"]
        ]
        widget.close()
        tab = browser.new_page()
        tabs.append(tab)
        tab.evaluate(MODEL, [view_script(), payload, state])
        return tab

    yield draw
    for tab in tabs:
        tab.close()


def pressed(tab):
    return tab.locator('.thumb[aria-pressed="true"]').get_attribute("title")


@pytest.mark.browser
def test_a_chosen_head_comes_back_to_the_model(widget):
    tab = widget({})
    assert len(tab.evaluate("saved")) == 1
    assert tab.evaluate("model.get('state').head") == 0
    tab.locator(".thumb").nth(8).click()
    tab.wait_for_function("saved.at(-1).layer === 1 && saved.at(-1).head === 2")
    assert tab.evaluate("location.hash") == ""


@pytest.mark.browser
def test_the_model_chooses_the_head_and_a_wrong_one_is_put_right(widget):
    tab = widget({"layer": 2, "head": 3, "heed": 1})
    assert pressed(tab) == "layer 2 · head 3"
    tab.evaluate("model.set('state', {...model.get('state'), layer: 1, head: 4})")
    assert pressed(tab) == "layer 1 · head 4"
    tab.evaluate("model.set('state', {layer: 1, head: 77, unit: {}, row: '<b>'})")
    assert pressed(tab) == "layer 1 · head 4"
    tab.wait_for_function("saved.at(-1).head === 4 && saved.at(-1).unit === 'words'")
    count = tab.evaluate("saved.length")
    tab.wait_for_timeout(500)
    assert tab.evaluate("saved.length") == count
    tab.evaluate("stop()")
    assert tab.evaluate("Object.values(listeners).flat().length") == 0


@pytest.mark.browser
def test_weights_from_buffers_are_those_of_the_page(widget, show):
    read = "canvas => canvas.toDataURL()"
    buffers, page = widget({}), show(samples.film())
    for tab in (buffers, page):
        tab.locator(".thumb").nth(9).click()
    found = [tab.locator(".matrix canvas").evaluate(read) for tab in (buffers, page)]
    assert found[0] == found[1]


@pytest.mark.browser
def test_the_theme_is_that_of_jupyterlab(widget):
    tab = widget({})
    assert tab.locator('.attlas[data-theme="light"]').count() == 1
    tab.evaluate("document.body.dataset.jpThemeLight = 'false'")
    tab.evaluate("model.set('payload', model.get('payload'))")
    assert tab.locator('.attlas[data-theme="dark"]').count() == 1
