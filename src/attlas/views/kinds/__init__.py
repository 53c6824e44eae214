"""The kinds of payloads, and how each is shown in a terminal and in a notebook.

A kind has three drawings: `render` and `fragment` in its file here, and `VIEWS.<kind>` in a file of
`views/browser`, for pages.
"""

from collections.abc import Callable, Mapping
from typing import Any, NamedTuple

from rich.console import Group

from attlas.errors import UnknownNameError
from attlas.views.kinds import (
    check,
    explanation,
    generation,
    heads,
    judgement,
    maps,
    redundancy,
    report,
    tree,
    triggers,
)


class View(NamedTuple):
    """How one kind of payload is shown where no script runs."""

    render: Callable[[Mapping[str, Any]], Group]  # in a terminal
    fragment: Callable[[Mapping[str, Any]], str]  # as HTML, in a notebook


VIEWS = {
    "check": View(check.render, check.fragment),
    "explanation": View(explanation.render, explanation.fragment),
    "generation": View(generation.render, generation.fragment),
    "heads": View(heads.render, heads.fragment),
    "judgement": View(judgement.render, judgement.fragment),
    "maps": View(maps.render, maps.fragment),
    "redundancy": View(redundancy.render, redundancy.fragment),
    "report": View(report.render, report.fragment),
    "tree": View(tree.render, tree.fragment),
    "triggers": View(triggers.render, triggers.fragment),
}


def view_of(payload: Mapping[str, Any]) -> View:
    """The view of a payload, by its kind."""
    kind = payload.get("kind")
    if kind not in VIEWS:
        raise UnknownNameError("kind of payload", str(kind), VIEWS)
    return VIEWS[kind]
