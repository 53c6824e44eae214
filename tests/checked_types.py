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
from types import CellType, CodeType, FunctionType
from typing import Any

import jaxtyping
from beartype import BeartypeConf, beartype

WRAPPED = "__beartype_func"  # the keyword by which a check of beartype holds the function it calls

jaxtyped = jaxtyping.jaxtyped
# What fails is a TypeError, as it is from jaxtyping, and may be caught as one.
check_calls = beartype(conf=BeartypeConf(violation_type=jaxtyping.TypeCheckError))
inner_checks: dict[CodeType, FunctionType] = {}


def checked(found: Any = None, **_checker: Any) -> Any:
    """A function, or a dataclass, that checks what it is called with and what it gives.

    The hook of jaxtyping first calls it with the name of a checker alone, which is beartype.
    """
    if found is None:
        return checked
    if isinstance(found, type):
        if dataclasses.is_dataclass(found) and not hasattr(found.__init__, "__wrapped__"):
            found.__init__ = in_a_context(found.__init__, check_calls(found.__init__))
        return found
    # Beartype checks the arguments of a generator only when it is first asked for a value.
    if not isinstance(found, FunctionType) or inspect.isgeneratorfunction(found):
        return jaxtyped(found, typechecker=beartype)
    return in_a_context(
        found, inner(found) if "<locals>" in found.__qualname__ else check_calls(found)
    )


def inner(function: FunctionType) -> Callable[..., Any]:
    """The check of an inner function; all functions of one place in the code share its work."""
    code = function.__code__
    if code not in inner_checks:
        inner_checks[code] = check_calls(shell(function))
    made = inner_checks[code]
    if WRAPPED not in (made.__kwdefaults__ or {}):
        return check_calls(function)
    found = FunctionType(made.__code__, made.__globals__, made.__name__)
    found.__kwdefaults__ = {**made.__kwdefaults__, WRAPPED: function}
    return found


def shell(function: FunctionType) -> FunctionType:
    """The same function without what it captured, which a check that stays would keep alive."""
    captured = tuple(CellType() for _ in function.__code__.co_freevars)
    given = function.__code__, function.__globals__, function.__name__, function.__defaults__
    found = FunctionType(*given, captured)
    found.__kwdefaults__, found.__annotations__ = function.__kwdefaults__, function.__annotations__
    return found


def in_a_context(function: Callable[..., Any], check: Callable[..., Any]) -> Callable[..., Any]:
    """Axes of the same name have the same size, from the arguments of a call to its result."""
    hints = function.__annotations__.values()
    has_axes = any(isinstance(hint, str) or "jaxtyping" in repr(hint) for hint in hints)

    @wraps(function)
    def call(*arguments: Any, **options: Any) -> Any:
        __tracebackhide__ = True
        if jaxtyping.config.jaxtyping_disable:
            return function(*arguments, **options)
        if not has_axes:
            return check(*arguments, **options)
        with jaxtyped("context"):
            return check(*arguments, **options)

    return call


jaxtyping.jaxtyped = checked
