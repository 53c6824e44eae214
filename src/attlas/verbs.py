"""Verbs: public functions that may take long and whose mistakes are told in one line."""

from collections.abc import Callable
from functools import wraps
from inspect import Parameter, signature
from typing import Any, ParamSpec, TypeVar

from attlas.errors import UnknownNameError
from attlas.progress import watched
from attlas.restoring import settled

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
        checked = settled(function if is_open else refuse_unknown(function))

        @wraps(function)
        def call(*given: Given.args, **named: Given.kwargs) -> Returned:
            asked: Any = named
            with watched(asked.get("watch"), what) as watch:
                told = {**asked, "watch": watch} if "watch" in own else asked
                try:
                    return checked(*given, **told)
                except UnknownNameError as problem:
                    if is_open and problem.name in asked and problem.name not in own:
                        known = [*problem.known, *own]
                        raise UnknownNameError(problem.kind, problem.name, known) from None
                    raise

        return call

    return decorate


def refuse_unknown(function: Callable[Given, Returned]) -> Callable[Given, Returned]:
    """Refuse an argument that a function does not know, with the nearest one that it knows."""
    own = [name for name in signature(function).parameters if name != "self"]

    @wraps(function)
    def call(*given: Given.args, **named: Given.kwargs) -> Returned:
        for name in named:
            if name not in own:
                raise UnknownNameError(f"argument of {function.__name__}", name, own)
        return function(*given, **named)

    return call
