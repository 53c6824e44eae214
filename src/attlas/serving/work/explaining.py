"""Explain and compare: what the verbs of these names return, as payloads."""

from time import monotonic
from typing import Any

from attlas.explaining.comparing import compare
from attlas.explaining.explanations import explain
from attlas.results import Explanation
from attlas.serving.requests import Compared, Comparing, Explaining
from attlas.serving.shelf import Shelf
from attlas.serving.work.asking import asked_of


def answer_explain(shelf: Shelf, asking: Explaining) -> dict[str, Any]:
    """The payload of an explanation."""
    begun = monotonic()
    found = _explained(shelf, asking, None if asking.maps else False)
    return {"explanation": found.payload(), "seconds": monotonic() - begun}


def answer_compare(shelf: Shelf, asking: Comparing) -> dict[str, Any]:
    """The payload of a comparison."""
    begun = monotonic()
    found = compare([_explained(shelf, each, False) for each in asking.explanations])
    return {"comparison": found.payload(), "seconds": monotonic() - begun}


def _explained(shelf: Shelf, asking: Explaining | Compared, maps: bool | None) -> Explanation:
    asked = asked_of(shelf.subject(asking.model), asking)
    found: Explanation = explain(
        asked.subject, asked.text, asking.method, maps=maps, **asked.arguments
    )
    return found
