"""Static figures at the size of a paper, drawn by matplotlib: one file for each kind of drawing.

A figure is a function under `@figure(kind, name)` that takes a `Room` and a payload; its
keyword-only arguments are its options. matplotlib is imported when a figure is drawn.
"""

from collections.abc import Callable, Mapping
from importlib import import_module
from inspect import Parameter, signature
from pkgutil import iter_modules
from typing import Any, TypeVar

from attlas.errors import UnknownNameError, UsageError

Draw = TypeVar("Draw", bound=Callable[..., Any])
FIGURES: dict[tuple[str, str], Callable[..., Any]] = {}  # by the kind of payload, and the name
_USUAL = {  # what is drawn unless another figure is named
    "explanation": "tokens",
    "generation": "matrix",
    "heads": "importance",
    "judgement": "measures",
    "maps": "heads",
    "redundancy": "matrix",
    "report": "methods",
    "study": "plot",
    "tree": "tree",
    "trial": "trial",
    "triggers": "effects",
}


def figure(kind: str, name: str) -> Callable[[Draw], Draw]:
    """Make a decorator for a function that draws payloads of a kind."""

    def register(function: Draw) -> Draw:
        FIGURES[kind, name] = function
        return function

    return register


def figure_names(kind: str) -> list[str]:
    """The names of the figures of a kind of payload."""
    _load_all()
    return [name for each, name in FIGURES if each == kind]


def draw(
    payload: Mapping[str, Any],
    name: str | None = None,
    ax: Any = None,
    width: float | int | str | None = None,
    **options: Any,
) -> Any:
    """Draw a figure of a payload and return its axes.

    It is drawn into `ax`, or else into a new figure of this width: inches, "single" or "double"
    (the columns of a paper). No state of matplotlib is changed.
    """
    kind = payload["kind"]
    known = figure_names(kind)
    if not known:
        raise UsageError(f"there is no figure of a {kind}: to_html writes a page of it")
    name = name or _usual(payload)
    if name not in known:
        raise UnknownNameError(f"figure of a {kind}", name, known)
    function = FIGURES[kind, name]
    own = [each.name for each in signature(function).parameters.values() if _is_option(each)]
    for option in options:
        if option not in own:
            raise UnknownNameError(f"option of the figure {name!r}", option, own)
    from attlas.views.figures.paper import Room, drawn

    return drawn(function, Room(ax, width), payload, options)


def _usual(payload: Mapping[str, Any]) -> str:
    """The figure that shows most of a payload."""
    kind = payload["kind"]
    if kind == "explanation" and payload["pictures"]:
        seen = {picture["segment"] for picture in payload["pictures"]}
        words = [token for token in payload["tokens"] if not token["special"]]
        return "picture" if all(token["segment"] in seen for token in words) else "tokens"
    if kind == "heads" and payload["charts"]:
        return "curves"
    return _USUAL[kind]


def _is_option(parameter: Parameter) -> bool:
    return parameter.kind is Parameter.KEYWORD_ONLY


def _load_all() -> None:
    try:
        for module in sorted(each.name for each in iter_modules(__path__)):
            import_module(f"{__name__}.{module}")
    except ModuleNotFoundError as problem:
        if (problem.name or "").partition(".")[0] != "matplotlib":
            raise
        raise UsageError(
            "figures need matplotlib, the extra `figures`: pip install 'attlas[figures]'"
        ) from problem
