"""Request: what a user wants to know about one text."""

from dataclasses import dataclass
from typing import Any

from attlas.errors import UsageError


@dataclass(frozen=True)
class Request:
    """What to explain: the target, its contrast, where to read it, and how to encode the text.

    A list as target or contrast means several choices at one place, any of which counts.
    """

    target: Any = None
    contrast: Any = None
    position: Any = None  # a number, a word, or a word and which one: ("was", 2)
    prefix: Any = None  # a text
    chat: bool = False
    truncate: bool = False

    @property
    def is_open(self) -> bool:
        """Whether the user left open what is explained."""
        given = (self.target, self.contrast, self.position, self.prefix)
        return all(each is None for each in given)

    def __post_init__(self) -> None:
        if self.prefix is not None and not isinstance(self.prefix, str):
            raise UsageError(f"a prefix is a text, not {self.prefix!r}")
        for name in ("target", "contrast", "position"):
            given = getattr(self, name)
            if getattr(given, "ndim", None) == 0 and hasattr(given, "item"):
                object.__setattr__(self, name, given.item())  # a tensor or an array of one number
