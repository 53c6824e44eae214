"""The study `attattr`: head pruning, effectiveness and triggers on four tasks.

Hao, Dong, Wei and Xu, "Self-Attention Attribution", AAAI 2021.
"""

import json
from collections.abc import Callable, Sequence
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
from attlas.studies.support.attattr_result import AttattrStudy, TaskResult
from attlas.studies.support.study import study
from attlas.views import write_whole

TASKS = ("sst2", "rte", "mrpc", "mnli")
SEED = 0


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
    for task in tasks:
        if task not in TASKS:
            raise UnknownNameError("task", task, TASKS)
        if not (Path(models) / task).is_dir():
            raise UsageError(f"{Path(models)} has no folder {task} with a model of this task")
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
