"""Verdict: whether attention weights may be read as an explanation, with the evidence for it."""

from collections.abc import Mapping
from dataclasses import dataclass

from attlas.errors import UnknownNameError
from attlas.results.support.report_sections import Figure

WORDS = ("supported", "not supported", "partly", "too few texts")
FINDINGS = ("for", "against", "open")


@dataclass(frozen=True)
class Bounds:
    """The figures for one way to remove tokens; the intervals of a verdict hold all at once.

    `s` is where the method stands between its shuffled scores (0) and the best order found (1).
    `less_reference` is `s` minus that of the reference. `finding` is what the two say.
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
    """Where a method that uses more than the weights stands, and its gain over the weights.

    `better` means that the interval of `gain` is above zero; the intervals hold all at once.
    """

    method: str
    family: str  # "V" or "P"
    s: Figure
    gain: Figure
    better: bool


@dataclass(frozen=True)
class Verdict:
    """One word and one sentence about the weights, and the figures behind them.

    The method and the reference were chosen on `chosen_on` texts and tested on `tested_on` others.
    If these were too few, `texts_needed` estimates how many texts would be enough.
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
        """The readings that are significantly better than the weights, the best first."""
        return tuple(each for each in self.readings if each.better)
