"""Request: what a user asks of one text."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Request:
    """What to explain of one text: a target, what to contrast it with, and where to read it."""

    target: Any = None
    contrast: Any = None
    position: int | None = None
    prefix: str | None = None
    chat: bool = False
    truncate: bool = False
