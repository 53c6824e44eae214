"""How far long work is, told to whoever watches."""

from collections.abc import Callable
from dataclasses import dataclass


@dataclass(frozen=True)
class Step:
    """What is being done, and how far it is."""

    what: str
    done: int
    total: int


Watch = Callable[[Step], None]
Tell = Callable[[str], None]


def silent(_: str) -> None:
    """Tell nobody."""
