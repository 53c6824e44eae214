"""How work tells the server how far it is."""

from collections.abc import Callable
from dataclasses import dataclass

from attlas.progress import Step


@dataclass(frozen=True)
class Teller:
    """Takes steps, and points of a search: the distance of an attention, the change it makes."""

    step: Callable[[Step], None]
    point: Callable[[float, float], None]
