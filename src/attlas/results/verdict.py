"""Verdict: whether the attention weights may be read as an explanation, and what that rests on."""

from collections.abc import Mapping
from dataclasses import dataclass

from attlas.errors import UnknownNameError
from attlas.results.support.report_sections import Figure

WORDS = ("supported", "not supported", "partly", "too few texts")
FINDINGS = ("for", "against", "open")


@dataclass(frozen=True)
class Bounds:
    """What was found with tokens removed in one way; the bounds of a verdict hold all at once.

    `s` is where the method stands between its shuffled scores (0) and the best order there is (1),
    `less_reference` how far that is from the reference, `finding` which way the two speak.
    """

    s: Figure
    less_reference: Figure | None
    finding: str  # one of FINDINGS
    why: str

    def __post_init__(self) -> None:
        if self.finding not in FINDINGS:
            raise UnknownNameError("finding", self.finding, FINDINGS)


@dataclass(frozen=True)
class OtherReading:
    """Where a method that uses more than the weights stands, and how far above the weights.

    `better` if the interval of `gain` lies above zero; the intervals of all readings hold at once.
    """

    method: str
    family: str  # "V" or "P"
    s: Figure
    gain: Figure
    better: bool


@dataclass(frozen=True)
class Verdict:
    """One word and one sentence on the weights, and the figures they rest on.

    The method and the reference were chosen on `chosen_on` texts and tested on `tested_on` others.
    `texts_needed` is about how many texts in all would tell, where these were too few.
    """

    word: str  # one of WORDS
    sentence: str
    method: str
    reference: str | None
    bounds: Mapping[str, Bounds]  # by removal
    chosen_on: int
    tested_on: int
    texts_needed: int | None
    readings: tuple[OtherReading, ...] = ()
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        if self.word not in WORDS:
            raise UnknownNameError("verdict", self.word, WORDS)

    @property
    def better_readings(self) -> tuple[OtherReading, ...]:
        """The readings that are above the weights beyond doubt, the highest first."""
        return tuple(each for each in self.readings if each.better)
