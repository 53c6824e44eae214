"""A result as a widget of a notebook: the views of a page, and a state that Python shares."""

from base64 import b64decode
from collections.abc import Mapping
from typing import Any

import anywidget
import traitlets

from attlas.views import fragment
from attlas.views.kinds import view_of
from attlas.views.page import view_script, view_style


def _in_state(name: str) -> Any:
    """An attribute that stands for one value of the state."""

    def read(widget: "Widget") -> Any:
        return widget.state.get(name)

    def write(widget: "Widget", value: Any) -> None:
        widget.state = {**widget.state, name: value}

    return property(read, write, doc=f"`state[{name!r}]`; None until a notebook has drawn it.")


class Widget(anywidget.AnyWidget):
    """Draws a payload in Jupyter, VS Code, Colab and marimo.

    `state` holds what is chosen: layer, head, token, row, unit and others. It is filled when a
    notebook draws the widget, follows what is chosen there, and chooses there what is written to
    it; a value that the payload does not allow is put right by the notebook. Where no widget
    runs, the result is shown as HTML without a script.
    """

    _esm = view_script()
    _css = view_style()
    payload = traitlets.Dict().tag(sync=True)
    state = traitlets.Dict().tag(sync=True)

    layer, head = _in_state("layer"), _in_state("head")
    token, row = _in_state("token"), _in_state("row")

    def __init__(self, payload: Mapping[str, Any]) -> None:
        view_of(payload)
        self._static = fragment(payload)
        super().__init__(payload=_with_bytes(payload), state={})

    def _repr_mimebundle_(self, **kwargs: Any) -> tuple[dict[str, Any], dict[str, Any]]:
        data, metadata = super()._repr_mimebundle_(**kwargs) or ({}, {})
        return {**data, "text/html": self._static}, metadata


def _with_bytes(value: Any) -> Any:
    """A payload whose maps are bytes: they travel as buffers, a quarter smaller than base64."""
    if isinstance(value, Mapping):
        return {
            name: b64decode(each) if name == "data" and "codes" in value else _with_bytes(each)
            for name, each in value.items()
        }
    return [_with_bytes(each) for each in value] if isinstance(value, list | tuple) else value
