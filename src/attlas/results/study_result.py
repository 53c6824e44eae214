"""StudyResult: a published experiment, run again, with the published figures beside ours."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

from attlas.errors import UnknownNameError
from attlas.results.support.files import plain, rebuild
from attlas.results.support.frames import Frame, frame
from attlas.results.support.plots import check_plot
from attlas.results.support.report_sections import Figure, Number
from attlas.results.support.result import Result

VERDICTS = ("reproduced", "partly", "not reproduced", "not tested here")
QUICK = (
    "A quick run on a small subset: it shows that the study works. What it says of each claim goes "
    "for these few texts, and decides nothing about the paper."
)


@dataclass(frozen=True)
class Claim:
    """A published claim, the rule that decides it, and what came out here.

    The rule is written down before the figures are known. `over` says what the interval of our
    figure is over.
    """

    said: str
    source: str
    rule: str
    verdict: str  # one of VERDICTS
    found: str = ""  # what was found, or why it was not tested
    ours: Figure | None = None
    published: Number = None
    over: str = "seeds"

    def __post_init__(self) -> None:
        if self.verdict not in VERDICTS:
            raise UnknownNameError("verdict of a claim", self.verdict, VERDICTS)

    @property
    def difference(self) -> Number:
        """Ours less the published figure, if both are known."""
        return _difference(self.ours, self.published)


@dataclass(frozen=True)
class ComparedRow:
    """One line of a published table: our figure and the published one."""

    name: str
    ours: Figure
    published: Number = None

    @property
    def difference(self) -> Number:
        """Ours less the published figure, if both are known."""
        return _difference(self.ours, self.published)


@dataclass(frozen=True)
class ComparedTable:
    """A published table, line by line: ours, published, difference."""

    title: str
    reading: str
    rows: tuple[ComparedRow, ...]
    over: str = "seeds"

    def cells(self) -> list[list[str]]:
        """The table as texts, its head first."""
        head = ["what", "ours", f"interval over {self.over}", "published", "difference"]
        return [head, *([row.name, *_cells(row)] for row in self.rows)]


@dataclass(frozen=True, eq=False)
class StudyResult(Result):
    """What a study asked, each published claim with its verdict, tables, plots, and the set-up."""

    view_kind: ClassVar[str] = "study"
    record_kind: ClassVar[str] = "study"

    name: str
    question: str
    paper: str
    quick: bool
    claims: tuple[Claim, ...]
    differs: tuple[str, ...]  # what of the set-up is not as published
    tables: tuple[ComparedTable, ...] = ()
    plots: tuple[Mapping[str, Any], ...] = ()  # as `attlas.results.support.plots` makes them
    settings: Mapping[str, Any] = field(default_factory=dict)
    seeds: tuple[int, ...] = ()
    notes: tuple[str, ...] = ()
    seconds: float | int = 0.0
    machine: str = ""
    versions: Mapping[str, str] = field(default_factory=dict)
    details: Mapping[str, Any] = field(default_factory=dict)  # all other numbers, as JSON

    def __post_init__(self) -> None:
        for plot in self.plots:
            check_plot(plot)
        for name in ("settings", "details"):
            object.__setattr__(self, name, plain(getattr(self, name)))

    def __getitem__(self, said: str) -> Claim:
        known = {each.said: each for each in self.claims}
        if said not in known:
            raise UnknownNameError(f"claim of {self.name}", said, known)
        return known[said]

    def to_pandas(self) -> Frame:
        """One row for each claim."""
        rows = [
            {**asdict(each), **_figure(each.ours), "difference": each.difference}
            for each in self.claims
        ]
        columns = ["said", "verdict", "ours", "low", "high", "published", "difference", "rule"]
        return frame(rows, columns=[*columns, "source", "found", "over"])

    def to_dict(self) -> dict[str, Any]:
        """Everything, as JSON."""
        return {str(key): plain(value) for key, value in asdict(self).items()}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> "StudyResult":
        """Read what `to_dict` returned."""
        return rebuild(cls, record)

    def payload(self) -> dict[str, Any]:
        """What a page, a notebook or a terminal draws."""
        record = self.to_dict()
        del record["details"]
        for kept, each in zip(record["claims"], self.claims, strict=True):
            kept["difference"] = each.difference
        for kept, table in zip(record["tables"], self.tables, strict=True):
            kept["cells"] = table.cells()
        return {
            **record,
            "kind": self.view_kind,
            "version": 1,
            "tokens": [],
            "headline": self.question,
            "warning": QUICK if self.quick else "",
            "answer": self.answer(),
            "code": self.code(),
        }

    def answer(self) -> str:
        """How many claims came out how, in one line."""
        counts = {word: sum(each.verdict == word for each in self.claims) for word in VERDICTS}
        shown = [f"{count} {word}" for word, count in counts.items() if count]
        return f"Of {len(self.claims)} published claims: {', '.join(shown)}."

    def code(self) -> str:
        """The Python lines that run the study again."""
        given = "".join(f", {name}={value!r}" for name, value in self.settings.items())
        quick = ", quick=True" if self.quick else ""
        return f"import attlas\nattlas.study({self.name!r}{given}{quick})"

    def markdown(self) -> str:
        """The result as a page of Markdown: claims, tables, what differs, settings."""
        return "\n".join(_markdown(self))

    def _page_title(self) -> str:
        return f"study {self.name}{' (quick)' if self.quick else ''}"

    def __repr__(self) -> str:
        return f"StudyResult({self.name}{', quick' if self.quick else ''}: {self.answer()})"


def _markdown(result: StudyResult) -> Iterator[str]:
    if result.quick:
        yield f"**{QUICK}**\n"
    yield f"{result.answer()}\n"
    claims = [["published", "source", "rule", "published figure", "ours", "difference", "verdict"]]
    for claim in result.claims:
        shown = [_number(claim.published), _with_interval(claim), _signed(claim.difference)]
        verdict = f"**{claim.verdict}**. {claim.found}".strip()
        claims.append([claim.said, claim.source, claim.rule, *shown, verdict])
    yield from _markdown_table(claims)
    for table in result.tables:
        yield f"\n### {table.title}\n\n{table.reading}\n"
        yield from _markdown_table(table.cells())
    yield "\n### What differs in the set-up\n"
    yield from (f"- {each}" for each in result.differs)
    if result.notes:
        yield "\n### Notes\n"
        yield from (f"- {each}" for each in result.notes)
    yield "\n### How this was run\n"
    yield from _markdown_table([["", ""], *([name, str(each)] for name, each in facts(result))])


def facts(result: StudyResult) -> list[tuple[str, str]]:
    """How a study was run: settings, seeds, versions, machine and time."""
    versions = " · ".join(f"{name} {each}" for name, each in result.versions.items())
    settings = " · ".join(f"{name} {each}" for name, each in result.settings.items())
    seeds = ", ".join(map(str, result.seeds))
    time = f"{result.seconds:.0f} s" if result.seconds >= 10 else f"{result.seconds:.1f} s"
    rows = [("settings", settings), ("seeds", seeds), ("machine", result.machine)]
    return [
        each for each in [*rows, ("versions", versions), ("time of its parts", time)] if each[1]
    ]


def _markdown_table(rows: list[list[str]]) -> Iterator[str]:
    head, *body = [[cell.replace("|", "\\|") for cell in row] for row in rows]
    yield f"| {' | '.join(head)} |"
    yield f"| {' | '.join(['---'] * len(head))} |"
    yield from (f"| {' | '.join(row)} |" for row in body)


def _difference(ours: Figure | None, published: Number) -> Number:
    if ours is None or ours.value is None or published is None:
        return None
    return ours.value - published


def _figure(ours: Figure | None) -> dict[str, Any]:
    known = ours or Figure(None)
    return {"ours": known.value, "low": known.low, "high": known.high}


def _cells(row: ComparedRow) -> list[str]:
    return [
        _number(row.ours.value),
        _interval(row.ours),
        _number(row.published),
        _signed(row.difference),
    ]


def _with_interval(claim: Claim) -> str:
    if claim.ours is None:
        return "–"
    value, interval = _number(claim.ours.value), _interval(claim.ours)
    return value if interval == "–" else f"{value} ({interval} over {claim.over})"


def _interval(figure: Figure) -> str:
    if figure.low is None or figure.high is None:
        return "–"
    return f"{_number(figure.low)} to {_number(figure.high)}"


def _number(value: Number) -> str:
    if value is None:
        return "–"
    shown = f"{value:z.3f}" if abs(value) < 10 else f"{value:.1f}"
    return shown.replace("-", "−")


def _signed(value: Number) -> str:
    return "–" if value is None else f"{'+' if value >= 0 else ''}{_number(value)}"
