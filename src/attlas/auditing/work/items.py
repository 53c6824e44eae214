"""The work of an audit in items that depend on no other, and the tables that each one writes."""

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import partial
from time import time
from typing import Any

from attlas.auditing.folder import Folder
from attlas.auditing.plan import AuditPlan
from attlas.auditing.work.explained import explain_batch
from attlas.auditing.work.figures import measure_batch
from attlas.auditing.work.robustness import measure_method
from attlas.auditing.work.trials import run_trial, trials_with_scopes
from attlas.measures import Measure
from attlas.progress import Step, Tell, Watch
from attlas.trials import TRIALS, Scope

BATCH_TABLES = ("values", "curves", "agreement", "scores")


@dataclass(frozen=True)
class WorkItem:
    """A batch of texts, a trial, or a measure that runs a method again."""

    label: str  # for whoever watches
    tables: tuple[str, ...]  # names of the tables it writes; the first one is written last
    work: Callable[[Folder, Tell], None]

    @property
    def name(self) -> str:
        """The table that is written last: where it exists, the item is done."""
        return self.tables[0]

    def is_done(self, folder: Folder) -> bool:
        """Whether all its tables are in the folder, undamaged."""
        return all(folder.has(name) for name in self.tables)


def work_items(plan: AuditPlan) -> list[WorkItem]:
    """Everything that an audit does before its report, the longest texts first."""
    count = len(plan.batches)
    batches = [
        WorkItem(
            f"texts, batch {count - number} of {count}",
            tuple(batch_tables(number).values()),
            partial(_do_batch, plan, number),
        )
        for number in reversed(range(count))
    ]
    scoped = sorted(trials_with_scopes(plan.settings.trials), key=_is_cheap)
    trials = [
        WorkItem(
            f"trial: {name}", (trial_table(name, scope),), partial(_do_trial, plan, name, scope)
        )
        for name, scope in scoped
    ]
    robustness = [
        WorkItem(
            f"{measure.name} of {method}",
            (robustness_table(measure.name, method),),
            partial(_do_robustness, plan, measure, method),
        )
        for measure, method in plan.robustness
    ]
    return [*batches, *trials, *robustness]


def do_items(plan: AuditPlan, folder: Folder, watch: Watch) -> None:
    """Do every item that is not in the folder yet."""
    items = work_items(plan)
    for place, item in enumerate(items):
        watch(Step(item.label, place, len(items)))
        if not item.is_done(folder):
            item.work(folder, partial(_tell, watch, item.label, place, len(items)))


def _tell(watch: Watch, label: str, done: int, total: int, what: str) -> None:
    watch(Step(f"{label}: {what}", done, total))


def _is_cheap(trial: tuple[str, Scope]) -> bool:
    return TRIALS[trial[0]].cost == "cheap"


def batch_tables(number: int) -> dict[str, str]:
    """The names of the tables of a batch, by kind."""
    return {kind: f"{kind} {number:05d}" for kind in BATCH_TABLES}


def trial_table(name: str, scope: Scope) -> str:
    """The name of the table of a trial."""
    return f"trial {name} {scope.kind}"


def robustness_table(measure: str, method: str) -> str:
    """The name of the table of a measure that runs a method again."""
    return f"robustness {measure} {method}"


def _do_batch(plan: AuditPlan, number: int, folder: Folder, tell: Tell) -> None:
    start = time()
    figures = measure_batch(explain_batch(plan, plan.batches[number], tell), plan, tell)
    names = batch_tables(number)
    for kind in reversed(BATCH_TABLES):
        details: Mapping[str, Any] = {}
        if kind == BATCH_TABLES[0]:
            details = {"refused": dict(figures.refused), "start": start, "end": time()}
        folder.write(names[kind], getattr(figures, kind), details)


def _do_trial(plan: AuditPlan, name: str, scope: Scope, folder: Folder, tell: Tell) -> None:
    start = time()
    frame, details = run_trial(plan, name, scope)
    folder.write(trial_table(name, scope), frame, {**details, "start": start, "end": time()})


def _do_robustness(
    plan: AuditPlan, measure: Measure, method: str, folder: Folder, tell: Tell
) -> None:
    start = time()
    frame, reason = measure_method(plan, measure, method)
    details = {"reason": reason, "start": start, "end": time()}
    folder.write(robustness_table(measure.name, method), frame, details)
