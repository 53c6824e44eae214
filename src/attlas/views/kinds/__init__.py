"""The kinds of payloads, one file each: how each is shown in a terminal and in a notebook.

The file `<kind>.py` holds `render` and `fragment`; `views/browser/<kind>.js` draws the same kind on
a page, by adding `VIEWS.<kind>`.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from pkgutil import iter_modules
from typing import Any, NamedTuple

from rich.console import Group

from attlas.errors import UnknownNameError


class View(NamedTuple):
    """How one kind of payload is shown where no script runs."""

    render: Callable[[Mapping[str, Any]], Group]  # in a terminal
    fragment: Callable[[Mapping[str, Any]], str]  # as HTML, in a notebook


def _view(kind: str) -> View:
    module = import_module(f"{__name__}.{kind}")
    try:
        return View(module.render, module.fragment)
    except AttributeError as problem:
        raise AttributeError(f"{problem}: a view has render and fragment") from problem


VIEWS = {name: _view(name) for name in sorted(each.name for each in iter_modules(__path__))}


def view_of(payload: Mapping[str, Any]) -> View:
    """The view of a payload, by its kind."""
    kind = payload.get("kind")
    if kind not in VIEWS:
        raise UnknownNameError("kind of payload", str(kind), VIEWS)
    return VIEWS[kind]
