"""All tables of an audit, read back from its folder."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
import pandas as pd

from attlas.auditing.folder import Folder
from attlas.auditing.plan import AuditPlan
from attlas.auditing.verdict.crossing import OTHER, Roles
from attlas.auditing.verdict.verdict import Tested
from attlas.auditing.work.explained import (
    CIRCULAR,
    CONTROLS,
    FREQUENCY,
    POSITION,
    REFERENCES,
    WEIGHTS,
)
from attlas.auditing.work.figures import RIGHT
from attlas.auditing.work.items import (
    BATCH_TABLES,
    batch_tables,
    robustness_table,
    trial_table,
    unusual_table,
)
from attlas.auditing.work.trials import read_trial, trials_with_scopes
from attlas.auditing.work.where import BEST, DIRECTION, IMPORTANCE, LABEL, LOCATION, MOVED, PULL
from attlas.mathematics.standing import Locations
from attlas.measures import is_circular
from attlas.methods import METHODS
from attlas.results.support.report_sections import Cost
from attlas.shapes import TextGroups, TextValues
from attlas.trials import Scope, TrialOutcome

Span = tuple[float, float]  # when some work began and when it ended, in seconds


@dataclass(frozen=True, eq=False)
class TrialRun:
    """A trial as it was run: what it found, or the reason why it could not be run."""

    name: str
    scope: Scope
    outcome: TrialOutcome | None
    reason: str | None


@dataclass(frozen=True, eq=False)
class StrangeTexts:
    """How often versions of each text without some tokens are stranger to the model than usual."""

    removal: str
    values: pd.Series  # by text
    usual: str  # what the versions were compared with


@dataclass(frozen=True, eq=False)
class Collected:
    """The figures of every text in long tables, with refusals, trials and costs."""

    results: pd.DataFrame  # as written to results.parquet
    curves: pd.DataFrame
    agreement: pd.DataFrame
    scores: pd.DataFrame
    where: pd.DataFrame  # what the verdict rests on
    groups: TextGroups | None  # of all texts
    seed: int
    refused: Mapping[str, str] = field(default_factory=dict)  # reasons by method or removal
    unmeasured: Mapping[tuple[str, str], str] = field(default_factory=dict)  # measure and method
    trials: Sequence[TrialRun] = ()
    costs: Sequence[Cost] = ()
    spans: Sequence[Span] = ()  # in which a run was at work
    unusual: Sequence[StrangeTexts] = ()

    @cached_property
    def values(self) -> pd.DataFrame:
        """The figures of the measures."""
        return self.results[self.results["measure"] != RIGHT]

    @property
    def labels(self) -> pd.Series:
        """The model's prediction for each text."""
        rows = self.where[self.where["kind"] == LABEL]
        return rows.set_index("text")["name"]

    @cached_property
    def methods(self) -> list[str]:
        """The methods that have figures, without controls."""
        known = set(self.values["method"].unique())
        return [name for name in METHODS.names() if name in known and name not in CONTROLS]

    @property
    def families(self) -> dict[str, str]:
        """The family of each method."""
        return {name: METHODS[name].family for name in self.methods}

    @cached_property
    def removals(self) -> list[str]:
        """The removals that have figures, in order."""
        return [str(name) for name in self.values["removal"].unique() if name]

    def circular(self) -> set[tuple[str, str]]:
        """The methods and removals for which a method would be tested against itself."""
        return {
            (name, removal)
            for name in self.methods
            for removal in self.removals
            if is_circular("location", name, removal)
        }

    def of_measure(self, measure: str, removal: str, column: str = "value") -> pd.DataFrame:
        """The figures of a measure under a removal: a row for each text, a column by method."""
        rows = self.values
        own = rows[(rows["measure"] == measure) & (rows["removal"] == removal)]
        return own.pivot(index="text", columns="method", values=column)

    @cached_property
    def tested_texts(self) -> list[int]:
        """The numbers of the texts that the verdict rests on."""
        rows = self.where[self.where["kind"] == BEST]
        return sorted(rows["text"].unique().tolist())

    def tested(self) -> Tested:
        """What the verdict rests on, on all texts."""
        found = {str(name): own for name, own in self.where.groupby("removal") if name}
        names = [str(name) for name in self.where["removal"].unique() if name]
        # One that failed on some texts was not seen on the others as the weights were.
        references = tuple(name for name in REFERENCES if name not in self.refused)
        return Tested(
            {removal: self._locations(found[removal]) for removal in names},
            Roles(WEIGHTS, (POSITION, FREQUENCY, OTHER), references, CIRCULAR),
            {name: family for name, family in self.families.items() if family in "VP"},
            self._moved(),
            {removal: self._directions(found[removal]) for removal in names},
            groups=self.groups_of(self.tested_texts),
            seed=self.seed,
        )

    def _locations(self, rows: pd.DataFrame) -> Locations:
        best, importance = (self._column(rows, kind) for kind in (BEST, IMPORTANCE))
        return Locations(best, importance, self._columns(rows, LOCATION))

    def _directions(self, rows: pd.DataFrame) -> dict[str, TextValues]:
        return {"pull": self._column(rows, PULL), **self._columns(rows, DIRECTION)}

    def _moved(self) -> TextValues | None:
        rows = self.where[self.where["kind"] == MOVED]
        return self._column(rows, MOVED) if len(rows) else None

    def _column(self, rows: pd.DataFrame, kind: str) -> TextValues:
        own = rows[rows["kind"] == kind].set_index("text")["value"]
        return own.reindex(self.tested_texts).to_numpy(dtype=np.float64)

    def _columns(self, rows: pd.DataFrame, kind: str) -> dict[str, TextValues]:
        """Of each name, the values on all texts."""
        own = rows[rows["kind"] == kind]
        table = own.pivot(index="text", columns="name", values="value").reindex(self.tested_texts)
        return {str(name): table[name].to_numpy(dtype=np.float64) for name in table}

    @property
    def attention_methods(self) -> list[str]:
        """The methods that use attention."""
        return [name for name, family in self.families.items() if family in "WVP"]

    def agreement_by_text(self) -> pd.Series:
        """Kendall's τ on each text, the mean over all pairs of methods that use attention."""
        pairs, own = self.agreement, self.attention_methods
        inside = pairs[pairs["one"].isin(own) & pairs["other"].isin(own)]
        return inside.groupby("text")["kendall"].mean()

    def groups_of(self, numbers: Sequence[int]) -> TextGroups | None:
        """The groups of these texts."""
        return None if self.groups is None else self.groups[list(numbers)]


def collect(plan: AuditPlan, folder: Folder) -> Collected:
    """Read the tables of all work items."""
    tables: dict[str, list[pd.DataFrame]] = {kind: [] for kind in BATCH_TABLES}
    refused: dict[str, str] = {}
    timed = _Timed()
    for number in range(len(plan.batches)):
        for kind, name in batch_tables(number).items():
            frame, details = folder.read(name)
            tables[kind].append(frame)
            if kind == BATCH_TABLES[0]:
                refused |= details["refused"]
                timed.add("explaining and measuring", details, len(plan.texts))
    sampled = len(plan.texts.drawn(plan.settings.texts_for_slowest))
    unmeasured: dict[tuple[str, str], str] = {}
    for measure, method in plan.robustness:
        frame, details = folder.read(robustness_table(measure.name, method))
        timed.add("measuring robustness", details, sampled)
        if method in refused:
            continue
        tables["values"].append(frame)
        if details["reason"]:
            unmeasured[measure.name, method] = details["reason"]
    unusual = []
    for removal in plan.removals:
        frame, details = folder.read(unusual_table(removal))
        timed.add("checking removals", details, sampled)
        if not details["reason"]:
            by_text = frame.set_index("text")["value"]
            unusual.append(StrangeTexts(removal, by_text, details["usual"]))
        elif removal not in refused:
            unmeasured["unusualness", removal] = details["reason"]
    trials = [_trial_run(folder, *each, timed) for each in trials_with_scopes(plan.settings.trials)]
    values, curves, agreement, scores, where = (_joined(tables[kind]) for kind in BATCH_TABLES)
    return Collected(
        values, curves, agreement, scores, where, plan.texts.groups, plan.settings.seed,
        refused, unmeasured, trials, timed.costs(),
        run_spans(folder.runs, timed.spans), unusual,
    )  # fmt: skip


def _trial_run(folder: Folder, name: str, scope: Scope, timed: "_Timed") -> TrialRun:
    frame, details = folder.read(trial_table(name, scope))
    if details["reason"] is not None:
        return TrialRun(name, scope, None, details["reason"])
    outcome = read_trial(frame, details)
    timed.add(f"trial {name}, {scope.kind}", details, len(outcome.texts))
    return TrialRun(name, scope, outcome, None)


def _joined(frames: Sequence[pd.DataFrame]) -> pd.DataFrame:
    full = [frame for frame in frames if len(frame)]
    return pd.concat(full or frames[:1], ignore_index=True)


class _Timed:
    """When work was done, summed up by its kind."""

    def __init__(self) -> None:
        self.spans: list[Span] = []
        self._costs: dict[str, Cost] = {}

    def add(self, what: str, details: Mapping[str, Any], texts: int) -> None:
        start, end = details["start"], details["end"]
        self.spans.append((start, end))
        before = self._costs[what].seconds if what in self._costs else 0.0
        self._costs[what] = Cost(what, before + end - start, texts)

    def costs(self) -> list[Cost]:
        return list(self._costs.values())


def run_spans(runs: Sequence[Span], work: Sequence[Span]) -> list[Span]:
    """When runs were at work: at least until the last work that each finished.

    A run that was killed could not say when it ended.
    """
    starts = [start for start, _ in runs]
    reached = [
        (max((each for each in starts if each <= start), default=start), end) for start, end in work
    ]
    return [*runs, *reached]


def wall_seconds(spans: Sequence[Span]) -> float:
    """The time that these spans cover; what several share counts once."""
    total, reached = 0.0, float("-inf")
    for start, end in sorted(spans):
        total += max(0.0, end - max(start, reached))
        reached = max(reached, end)
    return total
