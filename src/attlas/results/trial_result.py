"""TrialResult: what one trial found on a model and its data."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from typing import Any, ClassVar

from attlas.errors import UnknownNameError
from attlas.results.support.files import plain, rebuild
from attlas.results.support.frames import Frame, frame
from attlas.results.support.origin import Origin, subject_line
from attlas.results.support.report_sections import DataRecord, Figure, TrialFigure, TrialSection
from attlas.results.support.result import Result


@dataclass(frozen=True, eq=False)
class TrialResult(Result):
    """The outcome of a trial: a sentence, figures with their intervals, and plots.

    `section` is what a report shows of the trial, and `details` anything else that it found.
    """

    view_kind: ClassVar[str] = "trial"
    record_kind: ClassVar[str] = "trial"

    section: TrialSection
    data: DataRecord
    origin: Origin
    notes: tuple[str, ...] = ()
    details: Mapping[str, Any] = field(default_factory=dict)

    def __post_init__(self) -> None:
        object.__setattr__(self, "details", plain(self.details))

    @property
    def name(self) -> str:
        """The name of the trial."""
        return self.section.name

    @property
    def scope(self) -> str:
        """Which attention the trial is about, in words."""
        return self.section.scope

    @property
    def texts(self) -> int:
        """On how many texts it was run."""
        return self.data.texts

    @property
    def sentence(self) -> str:
        """What it found, in one or two sentences."""
        return self.section.sentence

    @property
    def figures(self) -> tuple[TrialFigure, ...]:
        """Its figures: means over texts, with intervals and ceilings."""
        return self.section.figures

    @property
    def plots(self) -> tuple[Mapping[str, Any], ...]:
        """Its plots, as JSON."""
        return self.section.plots

    @property
    def settings(self) -> Mapping[str, Any]:
        """The options that it was run with."""
        return self.origin.options

    def __getitem__(self, name: str) -> Figure:
        known = {each.name: each.figure for each in self.figures}
        if name not in known:
            raise UnknownNameError(f"figure of {self.name}", name, known)
        return known[name]

    def to_pandas(self) -> Frame:
        """One row for each figure."""
        rows = [
            {"figure": each.name, **asdict(each.figure), "ceiling": each.ceiling}
            for each in self.figures
        ]
        return frame(rows, columns=["figure", "value", "low", "high", "n", "ceiling"])

    def to_dict(self) -> dict[str, Any]:
        """Everything, as JSON."""
        return {
            "section": plain(asdict(self.section)),
            "data": plain(asdict(self.data)),
            "origin": self.origin.to_dict(),
            "notes": list(self.notes),
            "details": plain(self.details),
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> "TrialResult":
        """Read what `to_dict` returned."""
        return cls(
            rebuild(TrialSection, record["section"]),
            rebuild(DataRecord, record["data"]),
            Origin.from_dict(record["origin"]),
            tuple(record["notes"]),
            dict(record["details"]),
        )

    def payload(self) -> dict[str, Any]:
        """What a page, a notebook or a terminal draws."""
        record = self.to_dict()
        return {
            "kind": self.view_kind,
            "version": 1,
            **self.origin.view_facts(),
            "tokens": [],
            "trials": [record["section"]],
            "data": record["data"],
            "notes": record["notes"],
            "code": self.code(),
        }

    def code(self) -> str:
        """The Python lines that run the trial again; data in memory must be put in by hand."""
        asked = {**self.origin.asked, **self.origin.options}
        data = asked.pop("data", None)
        scope = asked.pop("scope", None)
        options = "".join(f", {key}={each!r}" for key, each in asked.items() if each is not None)
        if scope:
            given = ", ".join(f"{key}={each!r}" for key, each in scope.items())
            options = f", scope=attlas.Scope({given}){options}"
        lines = ["import attlas", subject_line(self.origin.model)]
        if data is None:
            lines.append("data = ...  # the texts")
        shown = "data" if data is None else repr(data)
        return "\n".join([*lines, f"attlas.try_trial(subject, {shown}, {self.name!r}{options})"])

    def _page_title(self) -> str:
        return f"{self.name} · {self.origin.model} on {self.data.name}"

    def __repr__(self) -> str:
        return f"TrialResult({self.name} on {self.origin.model}, {self.texts} texts)"
