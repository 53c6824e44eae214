"""Target: the number in the model's output that is explained.

A target picks choices at places of the output (see facts/tasks.py): one for a class or the next
token, several for a string of tokens, two for the start and the end of an answer. The score of a
contrast is subtracted: "why this and not that".
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import asdict, dataclass
from typing import Any

import torch
from torch import Tensor

from attlas.errors import UnknownNameError, UsageError
from attlas.shapes import BatchScores, Logits

Pick = tuple[int, int]  # place, choice
QUANTITIES = ("logit", "probability")
LINKS = ("softmax", "sigmoid", "identity")
MOST_SHOWN = 5
Prediction = tuple[Mapping[str, Any], ...]


@dataclass(frozen=True)
class Target:
    """The number in the model's output that is explained.

    Places are counted from the end (-1 is the last), so that they stay valid when the output is
    computed for its last places only.
    """

    name: str
    picks: tuple[Pick, ...]
    link: str = "softmax"  # how logits become probabilities; identity means a plain value
    contrast: tuple[Pick, ...] = ()
    contrast_name: str | None = None
    chained: bool = False  # several tokens in a row: their log-probabilities are summed
    position: int | None = None
    either: bool = False  # several choices at one place: the mean of logits, the sum of shares

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
        """The name of the number that a method gets when it asks for `logit` or `probability`."""
        if of not in QUANTITIES:
            raise UnknownNameError("quantity", of, QUANTITIES)
        if self.link == "identity":
            return "value"
        return "log-probability" if self.chained else of

    def score(self, logits: Tensor, of: str) -> Tensor:
        """The score of each row of outputs, `[…, place, choice]`, less that of the contrast."""
        quantity = self.quantity(of)
        table = logits if logits.dtype == torch.float64 else logits.float()
        if quantity in ("probability", "log-probability"):
            table = _log_probabilities(table, self.link)
        total = _sum(table, self.picks, quantity, self.either)
        if not self.contrast:
            return total
        return total - _sum(table, self.contrast, quantity, self.either)

    def first_place(self) -> int:
        """The earliest place that is read, counted from the end."""
        return min(place for place, _ in (*self.picks, *self.contrast))

    def check(self, logits: Tensor) -> "Target":
        """Return the target; raises if a row of outputs, `[place, choice]`, lacks what it picks."""
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


@dataclass(frozen=True)
class Ranked:
    """The choice with the largest logit, and the likeliest choices with their probabilities.

    For a plain value, all choices with their values.
    """

    largest: int
    choices: tuple[tuple[int, float], ...]
    plain: bool

    def named(self, name: Callable[[int], str]) -> Prediction:
        """The choices as a result lists them."""
        if self.plain:
            return tuple(
                {"label": name(i), "probability": None, "value": v} for i, v in self.choices
            )
        return tuple({"label": name(i), "probability": v} for i, v in self.choices)


def rank(rows: Tensor, link: str) -> list[Ranked]:
    """The best choices of each row of logits."""
    largest = rows.argmax(dim=-1).tolist()
    if link == "identity":
        pairs = [tuple(enumerate(map(float, row))) for row in rows.tolist()]
    else:
        sure = rows.float().sigmoid() if link == "sigmoid" else rows.float().softmax(-1)
        best = sure.topk(min(MOST_SHOWN, sure.shape[-1]))
        both = zip(best.indices.tolist(), best.values.tolist(), strict=True)
        pairs = [tuple(zip(*each, strict=True)) for each in both]
    plain = link == "identity"
    return [Ranked(first, each, plain) for first, each in zip(largest, pairs, strict=True)]


def best_choices(row: Tensor, link: str, name: Callable[[int], str]) -> Prediction:
    """The most likely choices with their probabilities; values for a regression."""
    return rank(row[None], link)[0].named(name)


def score_each(targets: Sequence[Target], logits: Logits, of: str) -> BatchScores:
    """The score of each target on its own row of outputs; similar targets are computed together."""
    alike: dict[Any, list[int]] = {}
    for row, target in enumerate(targets):
        counts = len(target.picks), len(target.contrast)
        form = (target.link, target.chained, target.either, counts)
        alike.setdefault(form, []).append(row)
    if len(alike) == 1:
        return _score_alike(targets, logits, of)
    rows = [row for group in alike.values() for row in group]
    scores = [
        _score_alike([targets[row] for row in group], logits[group], of) for group in alike.values()
    ]
    back = torch.tensor(rows, device=logits.device).argsort()
    return torch.cat(scores)[back]


def best_scores(logits: Logits, table: Tensor, link: str, of: str) -> Tensor:
    """The scores, `[variant, batch]`, of the best choice of each row at the last place.

    `table` has the logits of any number of variants, `[variant, batch, place, choice]`. Nothing is
    waited for, as it is where a target is made.
    """
    own = table[:, :, -1]
    wide = own if own.dtype == torch.float64 else own.float()
    if of == "probability":
        wide = _log_probabilities(wide, link).exp()
    best = logits[:, -1].argmax(dim=-1)
    return wide.gather(-1, best[None, :, None].expand(len(wide), -1, 1))[..., 0]


def _score_alike(targets: Sequence[Target], logits: Logits, of: str) -> BatchScores:
    """Like `score_each`, for targets with the same link and number of picks."""
    first = targets[0]
    quantity = first.quantity(of)
    table = logits if logits.dtype == torch.float64 else logits.float()
    if quantity in ("probability", "log-probability"):
        table = _log_probabilities(table, first.link)
    total = _gather(table, [target.picks for target in targets], quantity, first.either)
    if not first.contrast:
        return total
    contrasts = [target.contrast for target in targets]
    return total - _gather(table, contrasts, quantity, first.either)


def _gather(
    table: Logits, picks: Sequence[tuple[Pick, ...]], quantity: str, either: bool
) -> BatchScores:
    """Sum what each row picks from its own table, `[batch, place, choice]`."""
    if picks.count(picks[0]) == len(picks):
        return _sum(table, picks[0], quantity, either)
    _check_choices([pick for row in picks for pick in row], table.shape[-1])
    index = torch.tensor(picks, device=table.device)  # `[batch, pick, (place, choice)]`
    rows = torch.arange(len(table), device=table.device)[:, None]
    return _together(table[rows, index[..., 0], index[..., 1]], quantity, either)


def _sum(table: Tensor, picks: tuple[Pick, ...], quantity: str, either: bool) -> Tensor:
    _check_choices(picks, table.shape[-1])
    chosen = [table[..., place, choice] for place, choice in picks]
    return _together(torch.stack(chosen, dim=-1), quantity, either)


def _check_choices(picks: Sequence[Pick], count: int) -> None:
    last = max(choice for _, choice in picks)
    if last >= count:
        raise UsageError(f"the target is choice {last}, but the model has 0 to {count - 1}")


def _together(chosen: Tensor, quantity: str, either: bool) -> Tensor:
    """What `[…, pick]` logits or log-probabilities are together: all of them, or either."""
    if not either:
        total = chosen.sum(dim=-1)
        return total.exp() if quantity == "probability" else total
    if quantity == "probability":
        return chosen.exp().sum(dim=-1)
    return chosen.sum(dim=-1) / chosen.shape[-1]


def _log_probabilities(logits: Tensor, link: str) -> Tensor:
    if link == "sigmoid":
        return torch.nn.functional.logsigmoid(logits)
    return torch.log_softmax(logits, dim=-1)


def _lists(picks: tuple[Pick, ...]) -> list[list[int]]:
    return [list(pick) for pick in picks]
