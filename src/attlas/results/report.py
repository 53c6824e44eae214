"""Report: the verdict of an audit, its figures, and how to compute them again."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from math import isfinite
from typing import Any, ClassVar

from attlas.errors import ResultFileError
from attlas.results.support.files import plain, rebuild
from attlas.results.support.frames import Frame, frame
from attlas.results.support.report_sections import (
    Agreement,
    Cost,
    DataRecord,
    Finding,
    Panel,
    RemovalPair,
    ReportTable,
    Sample,
    Standing,
    TrialSection,
    UnusualTexts,
)
from attlas.results.support.result import Result
from attlas.results.support.verdict import Verdict
from attlas.version import __version__

QUESTION = "May attention be read as an explanation here?"


@dataclass(frozen=True, eq=False)
class Report(Result):
    """The verdict on one model and one data set, with all its evidence.

    `plausibility` is the only finding about agreement with people; it never changes the verdict.
    """

    view_kind: ClassVar[str] = "report"
    record_kind: ClassVar[str] = "report"

    model: str
    task: str
    data: DataRecord
    verdict: Verdict
    findings: tuple[Finding, ...]
    table: ReportTable
    standings: tuple[Standing, ...] = ()
    panels: tuple[Panel, ...] = ()
    agreement: Agreement | None = None
    removals: tuple[RemovalPair, ...] = ()
    unusual: tuple[UnusualTexts, ...] = ()
    examples: tuple[Sample, ...] = ()
    trials: tuple[TrialSection, ...] = ()
    plausibility: Finding | None = None
    does_not_show: tuple[str, ...] = ()
    notes: tuple[str, ...] = ()
    settings: Mapping[str, Any] = field(default_factory=dict)
    versions: Mapping[str, str] = field(default_factory=dict)
    costs: tuple[Cost, ...] = ()
    seed: int = 0
    seconds: float | int = 0.0
    command: str = ""

    def __post_init__(self) -> None:
        object.__setattr__(self, "settings", plain(self.settings))

    def to_pandas(self) -> Frame:
        """The table, one row for each method, measure and removal."""
        rows = [
            {
                "method": row.method,
                "family": row.family,
                **asdict(column),
                **asdict(cell.figure),
                "best": cell.best,
                "p": cell.p,
                "note": cell.note,
            }
            for row in self.table.rows
            for column, cell in zip(self.table.columns, row.cells, strict=True)
        ]
        return frame(rows)

    def to_dict(self) -> dict[str, Any]:
        """Everything, as JSON."""
        record: dict[str, Any] = plain(_without_nan(asdict(self)))
        return record

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> "Report":
        """Read what `to_dict` returned."""
        try:
            return rebuild(cls, record)
        except (AttributeError, KeyError, TypeError) as problem:
            made = record.get("versions", {}).get("attlas", "an unknown version")
            raise ResultFileError(
                f"the report was made by Attlas {made}, in a form that this version "
                f"({__version__}) does not read: audit again"
            ) from problem

    def payload(self) -> dict[str, Any]:
        """What a page, a notebook or a terminal draws."""
        return {
            "kind": self.view_kind,
            "version": 1,
            "question": QUESTION,
            "signed": False,
            "tokens": [],
            **self.to_dict(),
        }

    def _page_title(self) -> str:
        return f"{self.verdict.word} · {self.model} on {self.data.name}"

    def __repr__(self) -> str:
        return f"Report({self.model} on {self.data.name}: {self.verdict.word})"


def _without_nan(value: Any) -> Any:
    """The value with None for every NaN and infinity."""
    if isinstance(value, Mapping):
        return {key: _without_nan(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_without_nan(each) for each in value]
    return None if isinstance(value, float) and not isfinite(value) else value
