"""The study `attattr`: head pruning, effectiveness and triggers on four tasks.

Hao, Dong, Wei and Xu, "Self-Attention Attribution", AAAI 2021.
"""

import json
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import asdict, dataclass
from itertools import combinations
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar

from attlas import views
from attlas.data import texts
from attlas.errors import UnknownNameError, UsageError
from attlas.heads.curves import head_effectiveness, prune_curve
from attlas.heads.triggers import triggers
from attlas.models.load import load
from attlas.models.subject import Subject
from attlas.progress import Step, Watch
from attlas.results import HeadImportance, PruneCurve, Triggers
from attlas.results.head_importance import Correlation
from attlas.results.support.result import Result
from attlas.studies.support.study import study
from attlas.version import __version__
from attlas.views import write_whole

TASKS = ("sst2", "rte", "mrpc", "mnli")
SEED = 0
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


@study(
    about="head pruning, effectiveness and triggers on four tasks",
    paper="Hao et al. 2021, arXiv:2004.11207",
)
def attattr(
    models: str | PathLike[str],
    out: str | PathLike[str],
    tasks: Sequence[str] = TASKS,
    *,
    rank_on: int = 200,
    count: int | None = None,
    effect_on: int = 200,
    steps: int = 20,
    device: str | None = None,
    watch: Watch = lambda step: None,
) -> AttattrStudy:
    """Run the study on the models in a folder, one for each task, and write it to another.

    Heads are ranked on `rank_on` texts of the training split and tried on `count` texts of the dev
    split, all if not given; effectiveness is measured on `effect_on` of these. A task whose result
    is in `out` already, with the same options, is not run again.
    """
    check_tasks(models, tasks)
    _make_folder(Path(out))
    asked = {"rank_on": rank_on, "count": count, "effect_on": effect_on, "steps": steps}
    found = []
    for task in tasks:
        place = Path(out) / f"{task}.json"
        done = _read(place, asked)
        if done is None:
            subject = load(str(Path(models) / task), device=device)
            done = _run(subject, task, asked, _named(task, watch))
            write_whole(place, _json(done.to_dict()))
        found.append(done)
    result = AttattrStudy(tuple(found))
    write_whole(Path(out) / "attattr.json", _json(result.to_dict()))
    write_whole(Path(out) / "attattr.md", result.markdown())
    result.to_html(Path(out) / "attattr.html")
    return result


def check_tasks(models: str | PathLike[str], tasks: Sequence[str]) -> None:
    """Refuse a task that there is not, or without a model."""
    for task in tasks:
        if task not in TASKS:
            raise UnknownNameError("task", task, TASKS)
        if not (Path(models) / task).is_dir():
            raise UsageError(f"{Path(models)} has no folder {task} with a model of this task")


def _make_folder(folder: Path) -> None:
    try:
        folder.mkdir(parents=True, exist_ok=True)
    except OSError as problem:
        raise UsageError(f"{folder} cannot be made: {problem.strerror}") from problem


def _run(subject: Subject, task: str, asked: dict[str, Any], watch: Watch) -> TaskResult:
    ranked = texts(task, split="train", count=asked["rank_on"], seed=SEED)
    tried = texts(task, split="dev", count=asked["count"], seed=SEED)
    steps = asked["steps"]
    how: dict[str, Any] = {"steps": steps, "watch": watch}
    return TaskResult(
        task,
        asked,
        prune_curve(subject, ranked, tried, truncate=True, **how),
        head_effectiveness(subject, tried[: asked["effect_on"]], truncate=True, **how),
        triggers(subject, tried, seed=SEED, **how),
    )


def _named(task: str, watch: Watch) -> Callable[[Step], None]:
    return lambda step: watch(Step(f"{task}: {step.what}", step.done, step.total))


def _read(place: Path, asked: dict[str, Any]) -> TaskResult | None:
    """The result that is there already, if it has the same options."""
    if not place.is_file():
        return None
    try:
        record = json.loads(place.read_text("utf-8"))
        return TaskResult.from_dict(record) if record["asked"] == asked else None
    except (ValueError, KeyError, TypeError) as problem:
        raise UsageError(f"{place} is not a result of this study: {problem}") from problem


def _json(record: dict[str, Any]) -> str:
    return json.dumps(record, ensure_ascii=False, allow_nan=False)
