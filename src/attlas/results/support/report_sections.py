"""The sections of a report, and the figures with their intervals that they show."""

from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

from attlas.errors import UnknownNameError, UsageError
from attlas.results.support.licence import Licence
from attlas.results.support.plots import check_plot

Number = float | int | None

FAMILIES = ("W", "V", "P", "reference", "control")
SECTIONS = (  # in the order of the page; a finding names the section with its plot
    "verdict",
    "standing",
    "curves",
    "agreement",
    "removals",
    "examples",
    "trials",
    "plausibility",
    "table",
)


@dataclass(frozen=True)
class Figure:
    """A number with its 95 % interval and its number of texts; None and NaN mean unknown."""

    value: Number
    low: Number = None
    high: Number = None
    n: int | None = None


@dataclass(frozen=True)
class Finding:
    """One line of the first screen; `section`, one of SECTIONS, is where its plot is.

    The small plot goes from `span[0]` to `span[1]`, with a mark at `mark`. A `difference` is shown
    with its sign.
    """

    title: str
    sentence: str
    figure: Figure
    section: str
    does_not_show: str = ""
    span: tuple[float | int, float | int] = (0.0, 1.0)
    mark: Number = None
    difference: bool = False

    def __post_init__(self) -> None:
        _check_section(self.section)


@dataclass(frozen=True)
class Column:
    """A measure with one removal (empty if nothing is removed), and which way is better."""

    measure: str
    removal: str
    better: str  # "higher" or "lower"
    kind: str  # "faithfulness", "robustness" or "plausibility"


@dataclass(frozen=True)
class Cell:
    """A figure of the table; `best` if significantly so; `note` says why it is missing or odd."""

    figure: Figure
    best: bool = False
    p: Number = None  # of the test against shuffled scores, adjusted
    note: str = ""


@dataclass(frozen=True)
class MethodRow:
    """The cells of one method, one for each column."""

    method: str
    family: str  # one of FAMILIES; controls are drawn in grey
    cells: tuple[Cell, ...]


@dataclass(frozen=True)
class ReportTable:
    """The table of methods (rows) by measures (columns)."""

    columns: tuple[Column, ...] = ()
    rows: tuple[MethodRow, ...] = ()

    def __post_init__(self) -> None:
        for row in self.rows:
            if len(row.cells) != len(self.columns):
                raise UsageError(
                    f"{row.method}: {len(row.cells)} cells, but {len(self.columns)} columns"
                )


@dataclass(frozen=True)
class Standing:
    """How much of what matters a method finds: 0 is a random order, 1 the best one."""

    method: str
    family: str
    removal: str
    figure: Figure


@dataclass(frozen=True)
class Line:
    """A method's mean at each point of an axis, with its interval."""

    method: str
    family: str
    mean: tuple[Number, ...]
    low: tuple[Number, ...]
    high: tuple[Number, ...]


@dataclass(frozen=True)
class Panel:
    """The curves of one measure with one removal; `places` are shares of the tokens, 0 to 1."""

    measure: str
    removal: str
    better: str
    axis: str
    places: tuple[float | int, ...]
    lines: tuple[Line, ...]

    def __post_init__(self) -> None:
        for line in self.lines:
            for values in (line.mean, line.low, line.high):
                if len(values) != len(self.places):
                    raise UsageError(
                        f"{line.method}: {len(values)} points, but {len(self.places)} places"
                    )


@dataclass(frozen=True)
class Agreement:
    """How similar the methods' scores are; `by` maps a name to a matrix of every two methods."""

    methods: tuple[str, ...]
    by: Mapping[str, tuple[tuple[Number, ...], ...]]
    sentence: str = ""


@dataclass(frozen=True)
class RemovalPair:
    """The rank correlation between the orders that two removals give the methods."""

    measure: str
    one: str
    other: str
    figure: Figure


@dataclass(frozen=True)
class UnusualTexts:
    """How often a text changed by a removal is stranger to the model than `usual`: 0.5 is no more.

    `remedy` says what to do about it; empty if there is no need.
    """

    removal: str
    figure: Figure
    usual: str
    remedy: str = ""


@dataclass(frozen=True)
class Reading:
    """The scores of a method on an example, and the model's answer without its top tokens.

    `removed` holds positions of tokens. `label` is the model's answer without them, and
    `probability` that of the label it gave the whole text.
    """

    method: str
    scores: tuple[float | int, ...]
    signed: bool
    removed: tuple[int, ...]
    label: str
    probability: float | int


@dataclass(frozen=True)
class Truth:
    """What removing the tokens of one text showed, whatever any method says of them.

    `importance` is how far the answer moves on average when a token goes, `pull` how far the
    predicted answer falls: below zero for a token that speaks against it. `s` is how much of what
    matters the first reading finds on this text.
    """

    importance: tuple[Number, ...]
    pull: tuple[Number, ...]
    s: Number = None


@dataclass(frozen=True)
class Sample:
    """A text that illustrates `point`, with readings of it; `section` is one of SECTIONS.

    The tokens are those that may be removed, with the spaces before them; joined, they give the
    text. `words` holds the places of the tokens of each word. The first reading is that of the
    weights. In its licence, places count these tokens.
    """

    point: str
    tokens: tuple[str, ...]
    label: str
    probability: float | int
    removal: str
    readings: tuple[Reading, ...]
    section: str = "examples"
    truth: Truth | None = None
    licence: Licence | None = None
    words: tuple[tuple[int, ...], ...] = ()
    true_label: str | None = None  # if the data has one that the model knows

    def __post_init__(self) -> None:
        _check_section(self.section)
        given = {reading.method: len(reading.scores) for reading in self.readings}
        if self.truth is not None:
            given |= {"importance": len(self.truth.importance), "pull": len(self.truth.pull)}
        for name, count in given.items():
            if count != len(self.tokens):
                raise UsageError(f"{name}: {count} scores, but {len(self.tokens)} tokens")
        if self.words and [p for word in self.words for p in word] != [*range(len(self.tokens))]:
            raise UsageError(f"the words do not hold each of {len(self.tokens)} tokens in order")


@dataclass(frozen=True)
class TrialFigure:
    """One figure of a trial, and the largest value that it could have, if known."""

    name: str
    figure: Figure
    ceiling: Number = None


@dataclass(frozen=True)
class TrialSection:
    """One trial of the attention: which attention was changed, and what was found."""

    name: str
    scope: str
    sentence: str
    figures: tuple[TrialFigure, ...]
    does_not_show: str = ""
    plots: tuple[Mapping[str, Any], ...] = ()  # as `attlas.results.support.plots` makes them

    def __post_init__(self) -> None:
        for plot in self.plots:
            check_plot(plot)


@dataclass(frozen=True)
class LeftOutRow:
    """A row of the data that could not be used, and why."""

    row: str
    reason: str
    shown: str = ""


@dataclass(frozen=True)
class DataRecord:
    """The data: how many texts were used, and how many were not, by reason."""

    name: str
    texts: int
    labels: tuple[str, ...] = ()
    accuracy: Figure | None = None
    left_out: Mapping[str, int] = field(default_factory=dict)
    left_out_rows: tuple[LeftOutRow, ...] = ()


@dataclass(frozen=True)
class Cost:
    """The time that one piece of work took."""

    part: str
    seconds: float | int
    texts: int | None = None


def _check_section(name: str) -> None:
    if name not in SECTIONS:
        raise UnknownNameError("section", name, SECTIONS)
