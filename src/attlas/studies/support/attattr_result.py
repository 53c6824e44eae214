"""The result of the study `attattr`: for each task, and across tasks."""

from collections.abc import Iterator, Mapping
from dataclasses import asdict, dataclass
from itertools import combinations
from typing import Any, ClassVar

from attlas import views
from attlas.results import HeadImportance, PruneCurve, Triggers
from attlas.results.head_importance import Correlation
from attlas.results.support.result import Result
from attlas.version import __version__

RANKED_BY = "attattr"  # the ranking that tasks are compared by
TRIGGERS_SHOWN = 3


@dataclass(frozen=True, eq=False)
class TaskResult:
    """The results on one task, and the options they were computed with."""

    task: str
    asked: Mapping[str, Any]
    pruned: PruneCurve
    effectiveness: PruneCurve
    triggers: Triggers

    @property
    def importance(self) -> HeadImportance:
        """The importance of heads by attribution."""
        return next(each for each in self.pruned.importances if each.by == RANKED_BY)

    def to_dict(self) -> dict[str, Any]:
        """Everything, as JSON."""
        return {
            "task": self.task,
            "asked": dict(self.asked),
            "pruned": self.pruned.to_dict(),
            "effectiveness": self.effectiveness.to_dict(),
            "triggers": self.triggers.to_dict(),
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> "TaskResult":
        """Read what `to_dict` gave."""
        return cls(
            record["task"],
            record["asked"],
            PruneCurve.from_dict(record["pruned"]),
            PruneCurve.from_dict(record["effectiveness"]),
            Triggers.from_dict(record["triggers"]),
        )


@dataclass(frozen=True, eq=False)
class AttattrStudy(Result):
    """All tasks of the study, and how similar their important heads are."""

    view_kind: ClassVar[str] = "heads"
    record_kind: ClassVar[str] = "study attattr"

    tasks: tuple[TaskResult, ...]

    def correlations(self) -> dict[tuple[str, str], Correlation]:
        """The correlation of the importances of two tasks, for models with the same sites."""
        return {
            (one.task, other.task): one.importance.correlation(other.importance)
            for one, other in combinations(self.tasks, 2)
            if one.importance.sites == other.importance.sites
        }

    def to_dict(self) -> dict[str, Any]:
        """Everything, as JSON."""
        pairs = [
            {"tasks": list(tasks), **asdict(found)} for tasks, found in self.correlations().items()
        ]
        return {"tasks": [each.to_dict() for each in self.tasks], "correlations": pairs}

    def payload(self) -> dict[str, Any]:
        """What a page draws: the curves and the heads of every task."""
        charts = [
            {**curve.payload_section(), "title": f"{each.task}: {name}"}
            for each in self.tasks
            for name, curve in (
                ("accuracy as the least important heads go", each.pruned),
                ("by each text's own ranking", each.effectiveness),
            )
        ]
        heads = [{**each.importance.payload_section(), "by": each.task} for each in self.tasks]
        alike = [
            f"Important heads of {one} and {other}: Pearson {found.pearson:.2f}, "
            f"Spearman {found.spearman:.2f} over {found.heads} heads."
            for (one, other), found in self.correlations().items()
        ]
        notes = [f"{each.task}: {note}" for each in self.tasks for note in each.pruned.notes]
        return {
            "kind": self.view_kind,
            "version": 1,
            "attlas": __version__,
            "model": "Self-attention attribution",
            "method": "study attattr",
            "paper": self.tasks[0].importance.origin.paper,
            "reading": self.tasks[0].pruned.origin.reading,
            "tokens": [],
            "charts": charts,
            "importances": heads,
            "notes": [*alike, *notes],
            "code": "",
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> "AttattrStudy":
        """Read what `to_dict` returned."""
        return cls(tuple(TaskResult.from_dict(each) for each in record["tasks"]))

    def _page_title(self) -> str:
        return "study attattr"

    def markdown(self) -> str:
        """The figures as tables."""
        parts = [*self._curves(), *self._effectiveness(), *self._alike(), *self._triggers()]
        return "\n".join(parts)

    def _curves(self) -> Iterator[str]:
        for each in self.tasks:
            chart = each.pruned.payload_section()
            yield f"### {each.task}: accuracy in % as the least important heads go\n"
            yield f"{' '.join(each.pruned.notes)}\n"
            yield from _table(views.chart_cells(chart))
            yield ""
            yield from _table(views.area_cells(chart))
            yield ""

    def _effectiveness(self) -> Iterator[str]:
        for each in self.tasks:
            count = each.effectiveness.examples
            yield f"### {each.task}: accuracy in % by heads of every layer switched off\n"
            yield f"By each text's own ranking, {count} texts.\n"
            yield from _table(views.chart_cells(each.effectiveness.payload_section()))
            yield ""

    def _alike(self) -> Iterator[str]:
        if not self.correlations():
            return
        yield f"### Important heads across tasks, by {RANKED_BY}\n"
        rows = [["tasks", "Pearson", "Spearman", "heads"]]
        rows += [
            [" and ".join(tasks), f"{found.pearson:.2f}", f"{found.spearman:.2f}", str(found.heads)]
            for tasks, found in self.correlations().items()
        ]
        yield from _table(rows)
        yield ""

    def _triggers(self) -> Iterator[str]:
        yield "### Triggers\n"
        rows = [["task", "trigger", "class", "before", "random words", "trigger in", "drop beyond"]]
        for each in self.tasks:
            for trigger in each.triggers.triggers[:TRIGGERS_SHOWN]:
                most = trigger.strongest
                shares = (most.before, most.control, most.after)
                drop = f"{100 * most.drop:.0f} ({100 * most.low:.0f} to {100 * most.high:.0f})"
                figures = [f"{100 * share:.0f} %" for share in shares]
                rows.append([each.task, f"`{trigger.text}`", most.label, *figures, drop])
        yield from _table(rows)


def _table(rows: list[list[str]]) -> Iterator[str]:
    head, *body = rows
    yield f"| {' | '.join(head)} |"
    yield f"| {' | '.join(['---', *['---:'] * (len(head) - 1)])} |"
    for row in body:
        yield f"| {' | '.join(row)} |"
