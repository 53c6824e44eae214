"""Licence: whether one heat map may be read as where the model looked, and what that rests on."""

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass
from math import isfinite
from typing import Any

from attlas.results.support.files import plain, rebuild

MAY = "may be read as where"
MAY_NOT = "may not be read as where"
CANNOT = "cannot be told for this text"
WORDS = (MAY, MAY_NOT, CANNOT)

# What the words rest on.
FLOOR = 0.3  # of the best: scores that reach less are not where it matters
LEVEL = 0.05
LUCK = 0.1  # if chance does as well more often than this, the place is no better than chance
LEAST = 0.02  # a best capture below this means that no token matters more than another
RELIABLE = 0.5
SHORTEST = 4  # content tokens: of three, every sixth order is the right one


@dataclass(frozen=True)
class RemovalLicence:
    """What one way of removing tokens shows of a heat map. A figure that does not exist is None.

    The places of tokens are positions in the input, special tokens counted.
    """

    removal: str
    word: str  # one of WORDS
    capture: float | None  # of what matters, by the largest scores, beyond a random order
    best: float | None  # the same by the order of what matters
    share: float | None  # of the best that the scores reach: 0 is chance
    p: float | None  # how often the same scores in another order do as well
    reliability: float | None  # of what matters: 1 if other orders of removal find the same
    right_way: float | None  # the share of what is highlighted, or of signs, that is right
    for_target: float | None  # the share of all that pulls which speaks for the target
    enough: tuple[int, ...] | None  # the smallest set found that keeps the answer by itself
    needed: tuple[int, ...] | None  # the smallest set found without which the answer changes

    def __post_init__(self) -> None:
        for name, value in list(vars(self).items()):
            if isinstance(value, float):
                object.__setattr__(self, name, float(value) if isfinite(value) else None)


@dataclass(frozen=True)
class Licence:
    """Whether the largest scores of an explanation may be read as the tokens that matter."""

    word: str  # one of WORDS
    why: str  # one sentence
    removals: tuple[RemovalLicence, ...]
    signed: bool  # whether the scores say which way a token pulls
    exact: bool  # whether p is over all orders of the scores

    def to_dict(self) -> dict[str, Any]:
        """The licence as JSON."""
        record: dict[str, Any] = plain(asdict(self))
        return record

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> "Licence":
        """Read what `to_dict` returned."""
        return rebuild(cls, record)

    def __str__(self) -> str:
        return f"{self.word[0].upper()}{self.word[1:]}. {self.why}"


def _reached(rows: Sequence[RemovalLicence]) -> str:
    told = [f"{100 * (row.share or 0.0):.0f} % ({row.removal})".replace("-", "−") for row in rows]
    return " and ".join(told)


def why(word: str, rows: Sequence[RemovalLicence], count: int) -> str:
    """One sentence that says why a heat map of so many content tokens has this word."""
    if word == CANNOT:
        return _why_it_cannot(rows, count)
    if word == MAY:
        return (
            "The largest scores are at tokens that matter to the prediction: they reach "
            f"{_reached(rows)} of what the best order does, and chance would reach none."
        )
    return (
        "The largest scores are not surely at the tokens that matter to the prediction: they reach "
        f"{_reached(rows)} of what the best order does, and {_luck(rows)} of all orders of the "
        "same scores reach as much."
    )


def _luck(rows: Sequence[RemovalLicence]) -> str:
    return f"{100 * max(row.p or 0.0 for row in rows):.0f} %"


def _why_it_cannot(rows: Sequence[RemovalLicence], count: int) -> str:
    if count < SHORTEST:
        return (
            f"The text has {count} content tokens, and every order of so few may be right by luck."
        )
    if len(rows) < 2:
        return "Tokens can be removed from this model's inputs in fewer than two ways."
    if any((row.best or 0.0) < LEAST for row in rows):
        return "No token matters more than another here, so there is nothing to point at."
    if {row.word for row in rows} == {MAY, MAY_NOT}:
        return f"The two removals disagree: the scores reach {_reached(rows)} of the best."
    if any(row.word == CANNOT and (row.share or 0.0) >= FLOOR and _is_luck(row) for row in rows):
        return (
            f"The scores reach {_reached(rows)} of the best, but so do {_luck(rows)} of all orders "
            "of the same scores: it may be luck."
        )
    return "Which tokens matter here changes with the order in which they are removed."


def _is_luck(row: RemovalLicence) -> bool:
    return (row.p or 0.0) > LEVEL and (row.reliability or 0.0) >= RELIABLE
