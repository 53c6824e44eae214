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
    if not isinstance(found, FunctionType):
        return jaxtyped(found, typechecker=beartype)
    if "<locals>" in found.__qualname__:
        return in_a_context(found, inner(found))
    if inspect.isgeneratorfunction(found):
        return in_a_context(found, around(check_calls(shell(found)), found))
    return in_a_context(found, check_calls(found))


def inner(function: FunctionType) -> Callable[..., Any]:
    """The check of an inner function; all functions of one place in the code share its work."""
    code = function.__code__
    if code not in inner_checks:
        inner_checks[code] = check_calls(shell(function))
    return around(inner_checks[code], function)


def around(made: FunctionType, function: FunctionType) -> Callable[..., Any]:
    """A check that was made for the shell of a function, around the function itself."""
    if WRAPPED not in (made.__kwdefaults__ or {}):
        return function  # it says nothing of its types: beartype gave the shell back
    found = FunctionType(made.__code__, made.__globals__, made.__name__)
    found.__kwdefaults__ = {**made.__kwdefaults__, WRAPPED: function}
    return found


def shell(function: FunctionType) -> FunctionType:
    """The same function without what it captured, which a check that stays would keep alive.

    Nor is it a generator: of one, beartype checks the arguments only when it is first asked for a
    value.
    """
    captured = tuple(CellType() for _ in function.__code__.co_freevars)
    code = function.__code__.replace(co_flags=function.__code__.co_flags & ~inspect.CO_GENERATOR)
    given = code, function.__globals__, function.__name__, function.__defaults__
    found = FunctionType(*given, captured)
    found.__kwdefaults__, found.__annotations__ = function.__kwdefaults__, function.__annotations__
    return found


def in_a_context(function: Callable[..., Any], check: Callable[..., Any]) -> Callable[..., Any]:
    """Axes of the same name have the same size, from the arguments of a call to its result."""
    if check is function:
        return function
    config = jaxtyping.config
    hints = function.__annotations__.values()
    has_axes = any(isinstance(hint, str) or "jaxtyping" in repr(hint) for hint in hints)

    def call(*arguments: Any, **options: Any) -> Any:
        __tracebackhide__ = True
        return (function if config.jaxtyping_disable else check)(*arguments, **options)

    def call_with_axes(*arguments: Any, **options: Any) -> Any:
        __tracebackhide__ = True
        if config.jaxtyping_disable:
            return function(*arguments, **options)
        with jaxtyped("context"):
            return check(*arguments, **options)

    return wraps(function)(call_with_axes if has_axes else call)


jaxtyping.jaxtyped = checked
