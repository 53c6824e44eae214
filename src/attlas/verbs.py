"""Verbs: public functions that may take long and whose mistakes are told in one line."""

from collections.abc import Callable, Collection, Mapping
from functools import wraps
from inspect import Parameter, signature
from typing import Any, ParamSpec, TypeVar

from attlas.errors import UnknownNameError
from attlas.progress import watched

Given = ParamSpec("Given")
Returned = TypeVar("Returned")


def verb(what: str) -> Callable[[Callable[Given, Returned]], Callable[Given, Returned]]:
    """Make a decorator for a function that does this work, such as "auditing".

    Where nobody watches, the work is shown on standard error. An argument that the function does
    not know is refused with the nearest one that it knows.
    """

    def decorate(function: Callable[Given, Returned]) -> Callable[Given, Returned]:
        parameters = signature(function).parameters
        own = [name for name, each in parameters.items() if each.kind is not Parameter.VAR_KEYWORD]
        is_open = len(own) < len(parameters)

        @wraps(function)
        def call(*given: Given.args, **named: Given.kwargs) -> Returned:
            asked: Any = named
            if not is_open:
                _check(asked, own, function.__name__)
            with watched(asked.get("watch"), what) as watch:
                told = {**asked, "watch": watch} if "watch" in own else asked
                try:
                    return function(*given, **told)
                except UnknownNameError as problem:
                    if is_open and problem.name in asked and problem.name not in own:
                        known = [*problem.known, *own]
                        raise UnknownNameError(problem.kind, problem.name, known) from None
                    raise

        return call

    return decorate


def _check(given: Mapping[str, Any], own: Collection[str], function: str) -> None:
    for name in given:
        if name not in own:
            raise UnknownNameError(f"argument of {function}", name, own)
