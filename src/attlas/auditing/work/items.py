"""The work of an audit in items that depend on no other, and the tables that each one writes."""

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass, fields
from functools import partial
from time import time
from typing import Any

import numpy as np
import pandas as pd
import pyarrow as pa

from attlas.auditing.folder import Folder
from attlas.auditing.plan import AuditPlan
from attlas.auditing.texts import AuditTexts
from attlas.auditing.work.drafts import Drafts, KeptParts
from attlas.auditing.work.explained import explain_batch
from attlas.auditing.work.figures import COLUMNS, measure_batch
from attlas.auditing.work.trials import run_trial, trials_with_scopes
from attlas.engine import Engine
from attlas.engine.pool import pool_of
from attlas.engine.worker import Work
from attlas.errors import AttlasError
from attlas.explaining.explanations import explain
from attlas.keeping import keeping, kept
from attlas.measures import Measure, Occasion
from attlas.measures.randomisation import cascade, figure
from attlas.measures.sensitivity import sensitivities
from attlas.measures.support.recomputing import Recipe
from attlas.methods import METHODS
from attlas.models.subject import Subject
from attlas.progress import Step, Tell, Watch, silent
from attlas.removing.unusualness import unusualness
from attlas.trials import TRIALS, Scope

BATCH_TABLES = ("values", "curves", "agreement", "scores", "where")
Table = tuple[pd.DataFrame | pa.Table, dict[str, Any]]  # with its details


@dataclass(frozen=True)
class WorkItem:
    """A batch of texts, a trial, a measure that runs a method again, or a check of a removal."""

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
    """Everything that an audit does before its report, the drawn and the longest texts first."""
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
    checks = [
        WorkItem(
            f"unusualness by {how}", (unusual_table(how),), partial(_do_unusualness, plan, how)
        )
        for how in plan.removals
    ]
    return [*batches, *trials, *robustness, *checks]


def do_items(plan: AuditPlan, folder: Folder, watch: Watch) -> None:
    """Do every item that is not in the folder yet."""
    items = work_items(plan)
    for place, item in enumerate(items):
        watch(Step(item.label, place, len(items)))
        if not item.is_done(folder):
            item.work(folder, partial(_tell, watch, item.label, place, len(items)))


def do_items_on_ray(plan: AuditPlan, engine: Engine, watch: Watch, folder: Folder) -> None:
    """Have workers do every item that is not in the folder yet; this process writes the tables."""
    items = work_items(plan)
    left = [place for place, item in enumerate(items) if not item.is_done(folder)]
    if not left:
        return
    done = len(items) - len(left)
    watch(Step("joining the cluster", done, len(items)))
    with pool_of(engine, AuditWork.of(plan), plan.texts.subject) as pool:
        pieces = ((items[place].label, place) for place in left)
        look = lambda: watch(Step(f"work of {pool.state()}", done, len(items)))  # noqa: E731
        for _, found in pool.results(pieces, look):
            if isinstance(found, AttlasError):
                raise found
            for name, (frame, details) in found.items():
                folder.write(name, frame, details)
            done += 1


@dataclass(frozen=True)
class AuditWork(Work):
    """What workers do for an audit: a piece is the place of an item, and gives its tables."""

    texts: Mapping[str, Any]  # the texts and the plan, without the model
    plan: Mapping[str, Any]
    batches: list[list[int]]

    @classmethod
    def of(cls, plan: AuditPlan) -> "AuditWork":
        """What is sent of a plan."""
        return cls(_apart(plan.texts, "subject"), _apart(plan, "texts"), plan.batches)

    def begin(self, subject: Subject | None) -> Callable[[int], dict[str, Table]]:
        """Do items with this model from now on."""
        assert subject is not None
        plan = AuditPlan(AuditTexts(subject, **self.texts), **self.plan)
        plan.__dict__["batches"] = self.batches  # those of the driver, whatever is usual here
        items = work_items(plan)

        def do(place: int) -> dict[str, Table]:
            tables = TablesToSend()
            items[place].work(tables, silent)
            return tables.held

        return do


class TablesToSend(Folder):
    """The tables of one item in the memory of a worker, in the order in which they are written."""

    def __init__(self) -> None:
        super().__init__("", {})
        self.held: dict[str, Table] = {}

    def has(self, name: str) -> bool:
        """Whether a table was written."""
        return name in self.held

    def write(
        self, name: str, frame: pd.DataFrame | pa.Table, details: Mapping[str, Any] | None = None
    ) -> None:
        """Hold a table."""
        self.held[name] = (frame, dict(details or {}))

    def read(self, name: str) -> tuple[pd.DataFrame, dict[str, Any]]:
        """A table and its details."""
        frame, details = self.held[name]
        assert isinstance(frame, pd.DataFrame)
        return frame, details

    def remove(self, name: str) -> None:
        """Forget a table."""
        self.held.pop(name, None)


def _apart(record: Any, left_out: str) -> dict[str, Any]:
    """The fields that a record is made of, but one."""
    names = [each.name for each in fields(record) if each.init and each.name != left_out]
    return {name: getattr(record, name) for name in names}


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


def unusual_table(removal: str) -> str:
    """The name of the table of how strange texts without some tokens are to the model."""
    return f"unusual {removal}"


def _do_batch(plan: AuditPlan, number: int, folder: Folder, tell: Tell) -> None:
    start = time()
    drafts = Drafts(folder, number)
    explained = explain_batch(plan, plan.batches[number], drafts, tell)
    figures = measure_batch(explained, plan, drafts, tell)
    names = batch_tables(number)
    for kind in reversed(BATCH_TABLES):
        details: Mapping[str, Any] = {}
        if kind == BATCH_TABLES[0]:
            details = {"refused": dict(figures.refused), "start": start, "end": time()}
        folder.write(names[kind], getattr(figures, kind), details)
    drafts.remove()


def _do_trial(plan: AuditPlan, name: str, scope: Scope, folder: Folder, tell: Tell) -> None:
    start, table = time(), trial_table(name, scope)
    parts = KeptParts(folder, table)
    with keeping(parts.keep):
        frame, details = run_trial(plan, name, scope, tell)
    folder.write(table, frame, {**details, "start": start, "end": time()})
    parts.remove()


def _do_robustness(
    plan: AuditPlan, measure: Measure, method: str, folder: Folder, tell: Tell
) -> None:
    start, table = time(), robustness_table(measure.name, method)
    parts = KeptParts(folder, table)
    with keeping(parts.keep):
        frame, reason = measure_method(plan, measure, method)
    folder.write(table, frame, {"reason": reason, "start": start, "end": time()})
    parts.remove()


def _do_unusualness(plan: AuditPlan, how: str, folder: Folder, tell: Tell) -> None:
    start, count = time(), plan.settings.texts_for_slowest
    values, details = pd.Series(dtype=np.float64), {"reason": "", "usual": ""}
    try:
        found = unusualness(plan.texts.ask_drawn(count), how, plan.settings.seed)
    except AttlasError as problem:
        details["reason"] = " ".join(str(problem).split())
    else:
        values = pd.Series(found.values, plan.texts.drawn(count))
        details["usual"] = found.usual
    frame = values.rename_axis("text").reset_index(name="value")
    folder.write(unusual_table(how), frame, {**details, "start": start, "end": time()})


def measure_method(plan: AuditPlan, measure: Measure, method: str) -> tuple[pd.DataFrame, str]:
    """The figures of one measure for one method; if it cannot be applied, the reason."""
    try:
        figures = list(_figures(plan, measure, method))
    except AttlasError as problem:
        return pd.DataFrame(columns=list(COLUMNS)), " ".join(str(problem).split())
    rows = [(number, method, measure.name, "", value, np.nan) for number, value in figures]
    return pd.DataFrame(rows, columns=list(COLUMNS)), ""


def _figures(plan: AuditPlan, measure: Measure, method: str) -> Iterator[tuple[int, float]]:
    """The number and the figure of each text; some measures take all texts at once."""
    count, seed = plan.settings.texts_for_slowest, plan.settings.seed
    numbers, recipe = plan.texts.drawn(count), Recipe(METHODS[method], {})
    if measure.name == "sensitivity":
        values = sensitivities(recipe.fill(plan.texts.ask_drawn(count)), recipe, seed=seed)
        yield from zip(numbers, values.tolist(), strict=True)
    elif measure.name == "randomisation":
        cuts = cascade(recipe.fill(plan.texts.ask_drawn(count)), recipe, seed=seed)
        yield from ((numbers[index], figure(each)) for index, each in cuts.items())
    else:
        yield from _one_by_one(plan, numbers, measure, method)


def _one_by_one(
    plan: AuditPlan, numbers: list[int], measure: Measure, method: str
) -> Iterator[tuple[int, float]]:
    assert measure.ask is not None
    subject, settings = plan.texts.subject, plan.settings
    examples = [plan.texts.examples[number] for number in numbers]
    texts: list[Any] = [example.text for example in examples]
    explanations = explain(subject, texts, method, maps=False, truncate=settings.truncate)
    for number, example, explanation in zip(numbers, examples, explanations, strict=True):
        occasion = Occasion(subject, example.text, explanation, settings.seed, example)
        (value,) = kept(f"text {number}", partial(map, measure.ask, [occasion]))
        yield number, float(value)
