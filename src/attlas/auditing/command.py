"""The command that makes a report again."""

from collections.abc import Mapping
from shlex import quote
from typing import Any

from attlas.data.read_examples import ReadData


def command(model: str, read: ReadData, asked: Mapping[str, Any]) -> str:
    """What to type: options with what was asked, and nothing of what was left as it is.

    Data in memory have no name, and what can be set from Python alone has no option.
    """
    options = {"model": model, "data": read.source, **read.columns, **asked}
    return " ".join(["attlas audit", *(_option(*each) for each in options.items() if _said(*each))])


def _said(name: str, value: Any) -> bool:
    """Whether an option was given; of trials, no names at all is an answer too."""
    return value is not None and value is not False and (name == "trial" or value != [])


def _option(name: str, value: Any) -> str:
    if value is True:
        return f"--{name}"
    given = [value] if isinstance(value, (str, int)) else list(value) or ["none"]
    return " ".join(f"--{name} {quote(str(each))}" for each in given)
