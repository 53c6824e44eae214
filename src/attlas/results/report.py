"""Report: what an audit found, with the verdict, the figures and how to have them again."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from math import isfinite
from os import PathLike
from pathlib import Path
from typing import Any

import pandas as pd

from attlas import views
from attlas.results.support.files import plain, read_record, write_record
from attlas.results.support.rebuilding import rebuild
from attlas.results.support.report_parts import (
    Agreement,
    Cost,
    DataRecord,
    Finding,
    Panel,
    RemovalPair,
    Sample,
    Standing,
    Table,
    Trial,
)
from attlas.results.support.showing import Shown
from attlas.results.verdict import Verdict

QUESTION = "May attention be read as an explanation here?"


@dataclass(frozen=True, eq=False)
class Report(Shown):
    """The verdict on one model and one data set, and all that it rests on.

    `plausibility` is the one line on agreement with people; it never moves the verdict.
    """

    model: str
    task: str
    data: DataRecord
    verdict: Verdict
    findings: tuple[Finding, ...]
    table: Table
    standings: tuple[Standing, ...] = ()
    panels: tuple[Panel, ...] = ()
    agreement: Agreement | None = None
    removals: tuple[RemovalPair, ...] = ()
    examples: tuple[Sample, ...] = ()
    trials: tuple[Trial, ...] = ()
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

    def to_pandas(self) -> pd.DataFrame:
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
        return pd.DataFrame(rows)

    def to_dict(self) -> dict[str, Any]:
        """Everything, as JSON."""
        record: dict[str, Any] = plain(_known(asdict(self)))
        return record

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> "Report":
        """Read what `to_dict` gave."""
        return rebuild(cls, record)

    def payload(self) -> dict[str, Any]:
        """What a page, a notebook or a terminal draws."""
        return {
            "kind": "report",
            "version": 1,
            "question": QUESTION,
            "signed": False,
            "tokens": [],
            **self.to_dict(),
        }

    def to_html(self, path: str | PathLike[str]) -> Path:
        """Write the report as a page: one file, no network."""
        title = f"{self.verdict.word} · {self.model} on {self.data.name}"
        return views.write_whole(path, views.page(self.payload(), title))

    def save(self, path: str | PathLike[str]) -> Path:
        """Write everything to one file: safetensors, all of it in its header as JSON."""
        return write_record(path, "report", self.to_dict(), {})

    @classmethod
    def load(cls, path: str | PathLike[str]) -> "Report":
        """Read what `save` wrote."""
        with read_record(path, "report") as (header, _):
            return cls.from_dict(header)

    def __repr__(self) -> str:
        return f"Report({self.model} on {self.data.name}: {self.verdict.word})"


def _known(value: Any) -> Any:
    """The value with None for every number that is not one."""
    if isinstance(value, Mapping):
        return {key: _known(each) for key, each in value.items()}
    if isinstance(value, (list, tuple)):
        return [_known(each) for each in value]
    return None if isinstance(value, float) and not isfinite(value) else value
