"""Edits of a request: as the tap takes them, and as lines of Python, from one table."""

from typing import Any

from attlas.models.tap import edits
from attlas.models.tap.edits import Edit
from attlas.serving.requests import GivenEdit

Call = tuple[str, tuple[Any, ...], dict[str, Any]]  # a function of `edits`, and its arguments


def edit_of(given: GivenEdit) -> Edit:
    """An edit as the tap takes it."""
    (name, arguments, named), place = _calls(given)
    made: Edit = getattr(edits, name)(*arguments, **named)
    return made.at(**place)


def edit_code(given: GivenEdit) -> str:
    """The expression that makes the same edit."""
    (name, arguments, named), place = _calls(given)
    made = f"attlas.edits.{name}({_written(arguments, named)})"
    return f"{made}.at({_written((), place)})" if place else made


def _calls(given: GivenEdit) -> tuple[Call, dict[str, Any]]:
    """The function that makes the edit, and the arguments of `at`."""
    site = _known(kind=given.kind, layer=given.layer)
    rows = _known(heads=given.heads, queries=given.queries)
    if given.action == "replace":
        place = rows | _known(keys=given.keys)
        return ("put", (_lists(given.weights),), place), site
    if given.action == "zero" and given.keys is not None:
        return ("zero", (list(given.keys),), {}), site | rows
    made: dict[str, Call] = {
        "zero": ("scale", (0.0,), {}),
        "scale": ("scale", (given.factor,), {}),
        "uniform": ("uniform", (), {}),
        "shuffle": ("permute", (given.seed,), {}),
    }
    return made[given.action], site | rows | _known(keys=given.keys)


def _known(**named: Any) -> dict[str, Any]:
    return {name: _lists(each) for name, each in named.items() if each is not None}


def _lists(given: Any) -> Any:
    return [_lists(each) for each in given] if isinstance(given, tuple) else given


def _written(arguments: tuple[Any, ...], named: dict[str, Any]) -> str:
    return ", ".join([*map(repr, arguments), *(f"{name}={each!r}" for name, each in named.items())])
