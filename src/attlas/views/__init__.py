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
from attlas.views.head_tables import (
    area_cells,
    chart_cells,
    heads_fragment,
    redundancy_fragment,
    render_heads,
    render_redundancy,
)
from attlas.views.judgement_terminal import judgement_fragment, render_judgement
from attlas.views.page import page
from attlas.views.report.report_fragment import report_fragment
from attlas.views.report.report_terminal import render_report
from attlas.views.terminal import render_explanation
from attlas.views.tree.tree_drawing import tree_fragment
from attlas.views.tree.tree_figure import tree_figure
from attlas.views.tree.tree_layout import lay_out_tree
from attlas.views.tree.tree_terminal import render_tree
from attlas.views.trigger_table import render_triggers, triggers_fragment

__all__ = [
    "area_cells",
    "chart_cells",
    "fragment",
    "lay_out_tree",
    "page",
    "render",
    "tree_figure",
    "write_whole",
]

_FRAGMENTS = {
    "generation": generation_fragment,
    "heads": heads_fragment,
    "judgement": judgement_fragment,
    "redundancy": redundancy_fragment,
    "report": report_fragment,
    "tree": tree_fragment,
    "triggers": triggers_fragment,
}
_TERMINALS = {
    "generation": render_generation,
    "heads": render_heads,
    "judgement": render_judgement,
    "redundancy": render_redundancy,
    "report": render_report,
    "tree": render_tree,
    "triggers": render_triggers,
}


def fragment(payload: Mapping[str, Any]) -> str:
    """A result as HTML that needs no script, for notebooks, which may strip scripts."""
    return _FRAGMENTS.get(payload["kind"], explanation_fragment)(payload)


def render(payload: Mapping[str, Any]) -> Group:
    """A result for a terminal."""
    return _TERMINALS.get(payload["kind"], render_explanation)(payload)
