"""Licence: whether one heat map may be read as where the model looked, and what that rests on."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from math import isfinite
from typing import Any

from attlas.results.support.files import plain, rebuild

MAY = "may be read as where"
MAY_NOT = "may not be read as where"
CANNOT = "cannot be told for this text"
WORDS = (MAY, MAY_NOT, CANNOT)


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
