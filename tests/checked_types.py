"""The types and shapes of every call within Attlas are checked, at a low price.

Under pytest jaxtyping decorates every function and dataclass of Attlas with `jaxtyping.jaxtyped`,
which took two thirds of the time of all tests: it binds and checks the arguments twice, and it
makes the checks of an inner function anew whenever the outer function runs. `checked` takes its
place: beartype checks arguments and result once, in a context of jaxtyping's own, so an axis has
one size within a call.
"""

from __future__ import annotations

import dataclasses
import inspect
from collections.abc import Callable
from functools import wraps
from types import CodeType, FunctionType
from typing import Any

import jaxtyping
from beartype import beartype

WRAPPED = "__beartype_func"  # the keyword by which a check of beartype holds the function it calls

jaxtyped = jaxtyping.jaxtyped
inner_checks: dict[CodeType, FunctionType] = {}


def checked(found: Any = None, **_checker: Any) -> Any:
    """A function, or a dataclass, that checks what it is called with and what it gives.

    The hook of jaxtyping first calls it with the name of a checker alone, which is beartype.
    """
    if found is None:
        return checked
    if isinstance(found, type):
        if dataclasses.is_dataclass(found) and not hasattr(found.__init__, "__wrapped__"):
            found.__init__ = in_a_context(found.__init__, beartype(found.__init__))
        return found
    # Beartype checks the arguments of a generator only when it is first asked for a value.
    if not isinstance(found, FunctionType) or inspect.isgeneratorfunction(found):
        return jaxtyped(found, typechecker=beartype)
    return in_a_context(
        found, inner(found) if "<locals>" in found.__qualname__ else beartype(found)
    )


def inner(function: FunctionType) -> Callable[..., Any]:
    """The check of an inner function; all functions of one place in the code share its work."""
    made = inner_checks.get(function.__code__)
    if made is None:
        return inner_checks.setdefault(function.__code__, beartype(function))
    if WRAPPED not in (made.__kwdefaults__ or {}):
        return beartype(function)
    found = FunctionType(made.__code__, made.__globals__, made.__name__)
    found.__kwdefaults__ = {**made.__kwdefaults__, WRAPPED: function}
    return found


def in_a_context(function: Callable[..., Any], check: Callable[..., Any]) -> Callable[..., Any]:
    """Axes of the same name have the same size, from the arguments of a call to its result."""

    @wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        __tracebackhide__ = True
        if jaxtyping.config.jaxtyping_disable:
            return function(*arguments, **options)
        with jaxtyped("context"):
            return check(*arguments, **options)

    return call


jaxtyping.jaxtyped = checked
