"""What a result looks like: on a page, in a notebook, in a terminal.

Everything here takes a payload, a plain dict that JSON can hold, and knows nothing of models.
"""

from collections.abc import Mapping
from typing import Any

from rich.console import Group

from attlas.views.files import write_whole
from attlas.views.fragment import explanation_fragment
from attlas.views.generation_fragment import generation_fragment
from attlas.views.generation_terminal import render_generation
from attlas.views.page import page
from attlas.views.terminal import render_explanation

__all__ = ["fragment", "page", "render", "write_whole"]


def fragment(payload: Mapping[str, Any]) -> str:
    """A result as HTML that needs no script, for notebooks, which may strip scripts."""
    is_written = payload["kind"] == "generation"
    return generation_fragment(payload) if is_written else explanation_fragment(payload)


def render(payload: Mapping[str, Any]) -> Group:
    """A result for a terminal."""
    is_written = payload["kind"] == "generation"
    return render_generation(payload) if is_written else render_explanation(payload)
