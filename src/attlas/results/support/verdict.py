"""Verdict: whether attention weights may be read as showing where, with the evidence for it."""

from collections.abc import Mapping
from dataclasses import dataclass

from attlas.errors import UnknownNameError
from attlas.results.support.report_sections import Figure

WORDS = ("supported", "not supported", "partly", "too few texts")
FINDINGS = ("for", "in part", "against", "open")


@dataclass(frozen=True)
class Bounds:
    """The figures for one way to remove tokens; the intervals of a verdict hold all at once.

    `s` is how much of what matters the weights come upon early: 0 for a random order, 1 for the
    best one. `less_control` and `less_reference` are `s` minus that of the best control and of the
    best reference. `room` is how much there is to find on a text, as a probability; `carrying` is
    the share of texts with something to find, and `contrast` the share of all importance that the
    best order comes upon early.
    """

    s: Figure
    less_control: Figure | None
    less_reference: Figure | None
    control: str | None
    reference: str | None
    room: Figure
    effective_texts: float | int
    finding: str  # one of FINDINGS
    why: str
    carrying: Figure | None = None
    contrast: Figure | None = None

    def __post_init__(self) -> None:
        if self.finding not in FINDINGS:
            raise UnknownNameError("finding", self.finding, FINDINGS)


@dataclass(frozen=True)
class Direction:
    """The share that speaks for the prediction: of what the weights highlight, of all tokens."""

    removal: str
    highlighted: Figure
    all_tokens: Figure


@dataclass(frozen=True)
class GroupStanding:
    """s of the weights on some of the texts, and how many of these have nothing to find."""

    group: str  # a predicted class, or a range of lengths
    removal: str
    s: Figure
    without_room: int
    texts: int


@dataclass(frozen=True)
class GridWord:
    """The word that other thresholds would give."""

    floor: float | int
    margin: float | int
    word: str


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

    `which_way` answers the second question: which way what they name pulls. The method, controls
    and references were chosen on one half of the texts and tested on the other, both ways, for
    several splits; `same_word` is the share of splits that give the word. If the texts were too
    few, `texts_needed` estimates how many would do; None if no number would.
    """

    word: str  # one of WORDS
    sentence: str
    which_way: str
    next_step: str
    method: str
    bounds: Mapping[str, Bounds]  # by removal
    texts: int
    used: Figure | None = None
    same_word: float | int = 1.0
    texts_needed: int | None = None
    directions: tuple[Direction, ...] = ()
    by_group: tuple[GroupStanding, ...] = ()
    grid: tuple[GridWord, ...] = ()
    readings: tuple[OtherReading, ...] = ()
    notes: tuple[str, ...] = ()
    plain: str = ""  # the answer in everyday words; its first sentence is the shortest answer

    def __post_init__(self) -> None:
        if self.word not in WORDS:
            raise UnknownNameError("verdict", self.word, WORDS)

    @property
    def better_readings(self) -> tuple[OtherReading, ...]:
        """The readings that are significantly better than the weights, the best first."""
        return tuple(each for each in self.readings if each.better)
