"""Request: what a user wants to know about one text."""

from dataclasses import dataclass
from typing import Any


@dataclass(frozen=True)
class Request:
    """What to explain: the target, its contrast, where to read it, and how to encode the text."""

    target: Any = None
    contrast: Any = None
    position: int | None = None
    prefix: str | None = None
    chat: bool = False
    truncate: bool = False
