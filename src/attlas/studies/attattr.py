"""The study `attattr`: head pruning, effectiveness and triggers on four tasks.

Hao, Dong, Wei and Xu, "Self-Attention Attribution", AAAI 2021.
"""

from collections.abc import Callable, Mapping, Sequence
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
from attlas.studies.support.findings import Findings
from attlas.studies.support.run import Run
from attlas.studies.support.several_models import described, models_at, named
from attlas.studies.support.study import study
from attlas.studies.tables.pruned_heads import TaskResult, claims_on, task_plots, task_tables

TASKS = ("sst2", "rte", "mrpc", "mnli")
BUILT_IN = "reviews"  # the task of the built-in model
SEED = 0


@study(
    about="head pruning, effectiveness and triggers on four tasks",
    question="Does attention attribution find the heads that matter, and words that mislead?",
    paper="Hao et al. 2021, arXiv:2004.11207",
    quick={"rank_on": 3, "count": 8, "effect_on": 3, "steps": 2},
    takes=(6, 856),
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
        models: A folder with a fine-tuned model for each task, in folders named like the tasks,
            or with folders of models there, one for each seed of the training; without it, the
            built-in model on the built-in reviews.
        tasks: The tasks.
        rank_on: How many texts of the training split heads are ranked on.
        count: How many texts of the dev split heads are tried on; all if not given.
        effect_on: How many of these effectiveness is measured on.
        steps: Steps of the integral.
    """
    asked = {"rank_on": rank_on, "count": count, "effect_on": effect_on, "steps": steps}
    if models:
        check_tasks(models, tasks)
    kept: dict[str, list[Any]] = {}
    for task in tasks if models else (BUILT_IN,):
        for where in models_at(str(Path(models) / task)) if models else ("sentiment",):

            def compute(task: str = task, where: str = where) -> dict[str, Any]:
                subject = load(where, device=run.device)
                return _run(subject, task, asked, _named(task, run.watch)).to_dict()

            made = run.kept(f"{task} by {named(where)}", compute, ("tasks", "models"))
            kept.setdefault(task, []).append(made)
    found = {task: list(map(TaskResult.from_dict, own)) for task, own in kept.items()}
    first = [each[0] for each in found.values()]
    return Findings(
        claims=tuple(claims_on(found)),
        differs=DIFFERS,
        tables=task_tables(found),
        plots=task_plots(found),
        seeds=tuple(range(max(map(len, found.values())))),
        notes=(
            *(described(models_at(str(Path(models) / task))) for task in found if models),
            *(f"{each.task}: {note}" for each in first for note in each.pruned.notes),
        ),
        details={"tasks": [each.to_dict() for own in found.values() for each in own]},
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
