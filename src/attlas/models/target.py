"""Target: what is being explained, as one number of the model's output.

A target picks choices at places of the output (see tasks.py): one for a class or a next token,
several for a string of tokens, two for the start and the end of an answer. A contrast picks what
is to be taken away: "why this and not that".
"""

from dataclasses import dataclass

import torch
from torch import Tensor

from attlas.errors import UnknownNameError

Pick = tuple[int, int]  # place, choice
QUANTITIES = ("logit", "probability")


@dataclass(frozen=True)
class Target:
    """What is being explained; places are counted from the end, so that a prefix may be left out."""

    name: str
    picks: tuple[Pick, ...]
    link: str = "softmax"  # how logits become probabilities: softmax, sigmoid, or identity: a value
    contrast: tuple[Pick, ...] = ()
    contrast_name: str | None = None
    chained: bool = False  # several tokens in a row: their log-probabilities are summed
    position: int | None = None

    def quantity(self, of: str) -> str:
        """What the number is when a method asks for the `logit` or the `probability`."""
        if of not in QUANTITIES:
            raise UnknownNameError("quantity", of, QUANTITIES)
        if self.link == "identity":
            return "value"
        return "log-probability" if self.chained else of

    def score(self, logits: Tensor, of: str) -> Tensor:
        """The number for one row of outputs, `[place, choice]`, the contrast taken away."""
        quantity = self.quantity(of)
        table = logits if logits.dtype == torch.float64 else logits.float()
        if quantity in ("probability", "log-probability"):
            table = _log_probabilities(table, self.link)
        total = _sum(table, self.picks, quantity)
        return total - _sum(table, self.contrast, quantity) if self.contrast else total

    def first_place(self) -> int:
        """The earliest place that is looked at, counted from the end."""
        return min(place for place, _ in (*self.picks, *self.contrast))


def _sum(table: Tensor, picks: tuple[Pick, ...], quantity: str) -> Tensor:
    places, choices = zip(*picks, strict=True)
    total = table[list(places), list(choices)].sum()
    return total.exp() if quantity == "probability" else total


def _log_probabilities(logits: Tensor, link: str) -> Tensor:
    if link == "sigmoid":
        return torch.nn.functional.logsigmoid(logits)
    return torch.log_softmax(logits, dim=-1)
