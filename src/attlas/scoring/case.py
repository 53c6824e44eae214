"""A case: one prediction to explain, and what is known of it."""

from dataclasses import dataclass
from typing import Any

from attlas.data.example import Example


@dataclass(frozen=True)
class Case:
    """One prediction to explain: the model's own, unless a target is given.

    `prefix` is what a decoder has written before it. Several cases may come from one example.
    """

    example: Example
    prefix: str | None = None
    target: Any = None

    @property
    def answer(self) -> str:
        """What a model that is right predicts here."""
        label = str(self.example.label)
        return label if self.prefix is None else label[len(self.prefix)]
