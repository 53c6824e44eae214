"""How a result looks on a page, in a notebook, in a terminal and in a paper.

Everything here takes a payload, a plain dict that JSON can hold, and knows nothing about models.
"""

from collections.abc import Mapping
from typing import Any

from rich.console import Group

from attlas.views.drop_in import Shown, head_view, model_view
from attlas.views.elsewhere import visualize_text
from attlas.views.figures import draw, figure_names
from attlas.views.figures.latex import latex
from attlas.views.files import forget_drafts, write_whole
from attlas.views.kinds import view_of
from attlas.views.kinds.heads import area_cells, chart_cells
from attlas.views.page import page
from attlas.views.tree_drawing import lay_out_tree, tree_figure

__all__ = [
    "Shown",
    "area_cells",
    "chart_cells",
    "draw",
    "figure_names",
    "forget_drafts",
    "fragment",
    "head_view",
    "latex",
    "lay_out_tree",
    "model_view",
    "page",
    "render",
    "tree_figure",
    "visualize_text",
    "write_whole",
]


def fragment(payload: Mapping[str, Any]) -> str:
    """A result as HTML that needs no script, for notebooks, which may strip scripts."""
    return view_of(payload).fragment(payload)


def render(payload: Mapping[str, Any]) -> Group:
    """A result for a terminal."""
    return view_of(payload).render(payload)
