"""Target: what is being explained, as one number of the model's output.

A target picks choices at places of the output (see tasks.py): one for a class or a next token,
several for a string of tokens, two for the start and the end of an answer. A contrast picks what
is to be taken away: "why this and not that".
"""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from attlas.errors import UnknownNameError, UsageError
from attlas.shapes import BatchScores, Logits

Pick = tuple[int, int]  # place, choice
QUANTITIES = ("logit", "probability")
LINKS = ("softmax", "sigmoid", "identity")


@dataclass(frozen=True)
class Target:
    """What is being explained.

    Places are counted from the end (-1 is the last), so that a prefix may be left out.
    """

    name: str
    picks: tuple[Pick, ...]
    link: str = "softmax"  # how logits become probabilities: softmax, sigmoid, or identity: a value
    contrast: tuple[Pick, ...] = ()
    contrast_name: str | None = None
    chained: bool = False  # several tokens in a row: their log-probabilities are summed
    position: int | None = None

    def __post_init__(self) -> None:
        if self.link not in LINKS:
            raise UnknownNameError("link", self.link, LINKS)
        if not self.picks:
            raise UsageError("a target picks at least one choice: (place, choice)")
        if any(place >= 0 for place, _ in (*self.picks, *self.contrast)):
            raise UsageError("the places of a target are counted from the end: -1 is the last")
        if self.picks == self.contrast:
            raise UsageError(f"the contrast is the target itself, {self.name!r}")

    def quantity(self, of: str) -> str:
        """What the number is when a method asks for the `logit` or the `probability`."""
        if of not in QUANTITIES:
            raise UnknownNameError("quantity", of, QUANTITIES)
        if self.link == "identity":
            return "value"
        return "log-probability" if self.chained else of

    def score(self, logits: Tensor, of: str) -> Tensor:
        """The number for each row of outputs, `[…, place, choice]`, the contrast taken away."""
        quantity = self.quantity(of)
        table = logits if logits.dtype == torch.float64 else logits.float()
        if quantity in ("probability", "log-probability"):
            table = _log_probabilities(table, self.link)
        total = _sum(table, self.picks, quantity)
        return total - _sum(table, self.contrast, quantity) if self.contrast else total

    def first_place(self) -> int:
        """The earliest place that is looked at, counted from the end."""
        return min(place for place, _ in (*self.picks, *self.contrast))

    def check(self, logits: Tensor) -> "Target":
        """The target itself, if all it picks is there in a row of outputs, `[place, choice]`."""
        places, choices = logits.shape
        for place, choice in (*self.picks, *self.contrast):
            if place < -places or not 0 <= choice < choices:
                raise UsageError(
                    f"the target picks choice {choice} at place {place}; this output has "
                    f"{places} places of {choices} choices"
                )
        return self

    def to_dict(self) -> dict[str, Any]:
        """The target as JSON."""
        return {**asdict(self), "picks": _lists(self.picks), "contrast": _lists(self.contrast)}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> "Target":
        """Read what `to_dict` gave."""
        picks = {name: tuple((p, c) for p, c in record[name]) for name in ("picks", "contrast")}
        return cls(**{**record, **picks})


def score_each(targets: Sequence[Target], logits: Logits, of: str) -> BatchScores:
    """The number of each target on its own row of outputs; alike targets are computed together."""
    alike: dict[Any, list[int]] = {}
    for row, target in enumerate(targets):
        form = (target.link, target.chained, len(target.picks), len(target.contrast))
        alike.setdefault(form, []).append(row)
    if len(alike) == 1:
        return _score_alike(targets, logits, of)
    rows = [row for group in alike.values() for row in group]
    parts = [
        _score_alike([targets[row] for row in group], logits[group], of) for group in alike.values()
    ]
    back = torch.tensor(rows, device=logits.device).argsort()
    return torch.cat(parts)[back]


def _score_alike(targets: Sequence[Target], logits: Logits, of: str) -> BatchScores:
    """As `score_each`, for targets that pick as many choices by the same link."""
    first = targets[0]
    quantity = first.quantity(of)
    table = logits if logits.dtype == torch.float64 else logits.float()
    if quantity in ("probability", "log-probability"):
        table = _log_probabilities(table, first.link)
    total = _gather(table, [target.picks for target in targets], quantity)
    if not first.contrast:
        return total
    return total - _gather(table, [target.contrast for target in targets], quantity)


def _gather(table: Logits, picks: Sequence[tuple[Pick, ...]], quantity: str) -> BatchScores:
    """What each row picks of its own part of the table, `[batch, place, choice]`, summed."""
    index = torch.tensor(picks, device=table.device)  # `[batch, pick, (place, choice)]`
    rows = torch.arange(len(table), device=table.device)[:, None]
    total = table[rows, index[..., 0], index[..., 1]].sum(dim=-1)
    return total.exp() if quantity == "probability" else total


def _sum(table: Tensor, picks: tuple[Pick, ...], quantity: str) -> Tensor:
    total = torch.stack([table[..., place, choice] for place, choice in picks]).sum(dim=0)
    return total.exp() if quantity == "probability" else total


def _log_probabilities(logits: Tensor, link: str) -> Tensor:
    if link == "sigmoid":
        return torch.nn.functional.logsigmoid(logits)
    return torch.log_softmax(logits, dim=-1)


def _lists(picks: tuple[Pick, ...]) -> list[list[int]]:
    return [list(pick) for pick in picks]
