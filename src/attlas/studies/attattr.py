"""The study `attattr`: head pruning, effectiveness and triggers on four tasks.

Hao, Dong, Wei and Xu, "Self-Attention Attribution", AAAI 2021.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import combinations
from os import PathLike
from pathlib import Path
from typing import Any

from attlas.data import texts
from attlas.errors import UnknownNameError, UsageError
from attlas.heads.curves import head_effectiveness, prune_curve
from attlas.heads.triggers import triggers
from attlas.models.load import load
from attlas.models.subject import Subject
from attlas.progress import Step, Watch
from attlas.results import Claim, ComparedTable, HeadImportance, PruneCurve, Triggers
from attlas.results.support import plots
from attlas.results.support.report_sections import Figure
from attlas.studies.support.findings import (
    Findings,
    compared,
    decided,
    in_share,
    listed,
    share_of,
    untested,
)
from attlas.studies.support.run import Run
from attlas.studies.support.study import study

TASKS = ("sst2", "rte", "mrpc", "mnli")
PAIRS = ("rte", "mrpc", "mnli")  # the tasks about two texts, which are alike
BUILT_IN = "reviews"  # the task of the built-in model
SEED = 0
RANKED_BY = "attattr"  # the ranking that tasks are compared by
TRIGGERS_SHOWN = 3
SEPARATES = 0.05  # of accuracy: by so much, two orders of heads differ
PAPER = "Hao et al. 2021"


@dataclass(frozen=True, eq=False)
class TaskResult:
    """What was found on one task."""

    task: str
    pruned: PruneCurve
    effectiveness: PruneCurve
    triggers: Triggers

    @property
    def importance(self) -> HeadImportance:
        """The importance of heads by attribution."""
        return next(each for each in self.pruned.importances if each.by == RANKED_BY)

    def gap(self, by: str) -> float:
        """How much more accuracy the highest head of each layer costs than the lowest."""
        first, last = (
            self.effectiveness[f"{by}, {order} first"].points[1].accuracy.mean
            for order in ("highest", "lowest")
        )
        return last - first

    def to_dict(self) -> dict[str, Any]:
        """Everything, as JSON."""
        parts = {"pruned": self.pruned, "effectiveness": self.effectiveness}
        made = {name: each.to_dict() for name, each in parts.items()}
        return {"task": self.task, **made, "triggers": self.triggers.to_dict()}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> "TaskResult":
        """Read what `to_dict` returned."""
        pruned, effect = (
            PruneCurve.from_dict(record[name]) for name in ("pruned", "effectiveness")
        )
        return cls(record["task"], pruned, effect, Triggers.from_dict(record["triggers"]))


@study(
    about="head pruning, effectiveness and triggers on four tasks",
    question="Does attention attribution find the heads that matter, and words that mislead?",
    paper="Hao et al. 2021, arXiv:2004.11207",
    quick={"rank_on": 4, "count": 12, "effect_on": 4, "steps": 3},
    takes=(6, 210),
)
def attattr(
    run: Run,
    *,
    models: str = "",
    tasks: tuple[str, ...] = TASKS,
    rank_on: int = 200,
    count: int | None = None,
    effect_on: int = 200,
    steps: int = 20,
) -> Findings:
    """Prune heads by attribution and by other rankings, and look for words that mislead.

    Args:
        models: A folder with a fine-tuned model for each task, in folders named like the tasks;
            without one, the built-in model on the built-in reviews.
        tasks: The tasks.
        rank_on: How many texts of the training split heads are ranked on.
        count: How many texts of the dev split heads are tried on; all if not given.
        effect_on: How many of these effectiveness is measured on.
        steps: Steps of the integral.
    """
    asked = {"rank_on": rank_on, "count": count, "effect_on": effect_on, "steps": steps}
    if models:
        check_tasks(models, tasks)
    found = []
    for task in tasks if models else (BUILT_IN,):
        where = str(Path(models) / task) if models else "sentiment"

        def compute(task: str = task, where: str = where) -> dict[str, Any]:
            subject = load(where, device=run.device)
            return _run(subject, task, asked, _named(task, run.watch)).to_dict()

        found.append(TaskResult.from_dict(run.kept(task, compute, apart_from=("tasks",))))
    return Findings(
        claims=tuple(claims_on(found)),
        differs=DIFFERS,
        tables=(_areas(found),),
        plots=tuple(plot for each in found for plot in _plots(each)) + _alike(found),
        seeds=(SEED,),
        notes=tuple(f"{each.task}: {note}" for each in found for note in each.pruned.notes),
        details={"tasks": [each.to_dict() for each in found]},
    )


DIFFERS = (
    "The model is the user's, not BERT-base-cased: the figures name it.",
    "Attribution is integrated over midpoints; the paper takes a right sum.",
    "Heads are ranked on the training split and tried on the dev split; the released code ranks on "
    "200 of the texts that it tries them on.",
    "Taylor expansion takes the gradient of the loss, in the paper's form and in Michel's; the "
    "released code takes that of the logits.",
    "Attention as a ranking is the mean of the row maxima, since the mean is the same for all "
    "heads.",
    "Controls are added: five random orders of heads, and random words as frequent as triggers.",
)


def claims_on(found: Sequence[TaskResult]) -> list[Claim]:
    """The claims of the paper, decided on these tasks."""
    areas = {
        each.task: {line.name: line.area.mean for line in each.pruned.curves} for each in found
    }
    rivals = {
        f"{task}: {name}": own[RANKED_BY] >= own[name]
        for task, own in areas.items()
        for name in ("taylor", "accuracy_difference")
    }
    matter = {each.task: each.gap("attattr") >= SEPARATES for each in found}
    blind = {each.task: abs(each.gap("attention")) < each.gap("attattr") / 2 for each in found}
    return [
        decided(
            "Heads with high attribution matter: without the first of each layer accuracy falls, "
            "without the last it hardly does",
            f"{PAPER}, effectiveness analysis (figure)",
            in_share(
                f"in every task the first head costs {SEPARATES:g} more accuracy than the last"
            ),
            share_of(matter),
            found=listed({each.task: each.gap("attattr") for each in found}),
            over="tasks",
        ),
        decided(
            "Attention scores do not separate the heads",
            f"{PAPER}, effectiveness analysis (figure)",
            in_share(
                "in every task attention separates them less than half as well as attribution"
            ),
            share_of(blind),
            found=listed({each.task: each.gap("attention") for each in found}),
            over="tasks",
        ),
        decided(
            "Ranking by attribution prunes at least as well as Taylor expansion and accuracy "
            "difference",
            f"{PAPER}, attention head pruning (figure)",
            in_share("in every task the mean of its curve is at least that of either"),
            share_of(rivals),
            found=listed({task: own[RANKED_BY] - own["taylor"] for task, own in areas.items()}),
            over="tasks and rivals",
        ),
        _similar(found),
        _misled(found),
    ]


def _similar(found: Sequence[TaskResult]) -> Claim:
    said = "Important heads are similar for similar tasks"
    source = f"{PAPER}, attention head pruning (figure)"
    ranks = correlations(found)
    alike = [rank for (one, other), rank in ranks.items() if one in PAIRS and other in PAIRS]
    apart = [rank for (one, other), rank in ranks.items() if "sst2" in (one, other)]
    if not alike or not apart:
        return untested(said, source, "it takes sst2 and two of rte, mrpc and mnli")
    return decided(
        said,
        source,
        in_share("each two tasks of pairs have a higher rank correlation than any has with sst2"),
        share_of([each > max(apart) for each in alike]),
        found=listed({f"{one} and {other}": rank for (one, other), rank in ranks.items()}),
        over="pairs of tasks",
    )


def _misled(found: Sequence[TaskResult]) -> Claim:
    said = "A few words taken from the largest attributions mislead the model in other texts"
    tried = {each.task: [one.strongest for one in each.triggers.triggers] for each in found}
    strongest = {task: max(own, key=lambda one: one.drop) for task, own in tried.items() if own}
    rule = in_share(
        "in every task a trigger costs a class more than random words, interval above 0"
    )
    return decided(
        said,
        f"{PAPER}, adversarial triggers",
        rule,
        share_of([each.low > 0 for each in strongest.values()]),
        found=listed({task: each.drop for task, each in strongest.items()}),
        over="tasks",
    )


def correlations(found: Sequence[TaskResult]) -> dict[tuple[str, str], float]:
    """The rank correlation of the importances of two tasks, for models with the same sites."""
    return {
        (one.task, other.task): one.importance.correlation(other.importance).spearman
        for one, other in combinations(found, 2)
        if one.importance.sites == other.importance.sites
    }


def _areas(found: Sequence[TaskResult]) -> ComparedTable:
    ours = {
        f"{each.task}: {line.name}": Figure(line.area.mean, line.area.low, line.area.high)
        for each in found
        for line in each.pruned.curves
    }
    reading = "The mean accuracy over all shares of heads switched off, the least important first."
    return compared("Pruning: the mean of each curve", reading, ours, {}, over="texts")


def _plots(each: TaskResult) -> list[plots.Plot]:
    made = []
    for title, drawn, along in (
        ("accuracy as the least important heads go", each.pruned, "share of heads switched off"),
        ("accuracy by each text's own ranking", each.effectiveness, "heads of each layer off"),
    ):
        lines = {line.name: [point.accuracy.mean for point in line.points] for line in drawn.curves}
        places = [point.place for point in drawn.curves[0].points]
        reading = "A curve that stays high switches off heads that do not matter."
        axes: dict[str, Any] = {"x_label": along, "y_label": "accuracy", "reading": reading}
        made.append(plots.curve(f"{each.task}: {title}", places, lines, **axes))
    rows = [
        [one.text, most.label, most.before, most.control, most.after, most.drop]
        for one in each.triggers.triggers[:TRIGGERS_SHOWN]
        for most in [one.strongest]
    ]
    head = ["trigger", "class", "before", "random words", "with it", "drop beyond random"]
    reading = "Accuracy of the class that a trigger harms most."
    return [*made, plots.table(f"{each.task}: triggers", head, rows, reading=reading)]


def _alike(found: Sequence[TaskResult]) -> tuple[plots.Plot, ...]:
    ranks = {f"{one} and {other}": rank for (one, other), rank in correlations(found).items()}
    reading = "A longer bar: two tasks whose important heads are more alike."
    drawn = plots.bars("Important heads", ranks, x_label="rank correlation", reading=reading)
    return (drawn,) if ranks else ()


def check_tasks(models: str | PathLike[str], tasks: Sequence[str]) -> None:
    """Refuse a task that there is not, or without a model."""
    if not Path(models).is_dir():
        raise UsageError(f"{models} is no folder: models names one with a model for each task")
    for task in tasks:
        if task not in TASKS:
            raise UnknownNameError("task", task, TASKS)
        if not (Path(models) / task).is_dir():
            raise UsageError(f"{Path(models)} has no folder {task} with a model of this task")


def _run(subject: Subject, task: str, asked: Mapping[str, Any], watch: Watch) -> TaskResult:
    splits = (None, None) if task == BUILT_IN else ("train", "dev")
    ranked = texts(task, split=splits[0], count=asked["rank_on"], seed=SEED)
    known = {each.text for each in ranked}
    drawn = texts(task, split=splits[1], count=asked["count"], seed=SEED)
    tried = [each for each in drawn if task != BUILT_IN or each.text not in known]
    how: dict[str, Any] = {"steps": asked["steps"], "watch": watch}
    pruned = prune_curve(subject, ranked, tried, truncate=True, **how)
    effect = head_effectiveness(subject, tried[: asked["effect_on"]], truncate=True, **how)
    return TaskResult(task, pruned, effect, triggers(subject, tried, seed=SEED, **how))


def _named(task: str, watch: Watch) -> Callable[[Step], None]:
    return lambda step: watch(Step(f"{task}: {step.what}", step.done, step.total))
