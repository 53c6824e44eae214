"""The trials of an audit: experiments on the attention itself, each on some of the texts."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import pandas as pd

from attlas.auditing.plan import AuditPlan
from attlas.errors import AttlasError
from attlas.models.asking.filling import fill
from attlas.progress import Tell, silent
from attlas.results.support.files import plain
from attlas.trials import TRIALS, Scope, TrialOutcome

USE = ("permutation", "uniform")  # these trials tell whether the attention is used at all
EVERYWHERE = Scope("all")
SCOPES = {
    **{name: (Scope(), EVERYWHERE) for name in USE},
    "adversarial_keys": (EVERYWHERE,),
    "head_patterns": (EVERYWHERE,),
}
REPEATS = {EVERYWHERE: {"permutation": {"repeats": 20}}}  # each one is a pass of the whole model
COLUMNS = ("text", "figure", "value")


def trials_with_scopes(names: Sequence[str]) -> list[tuple[str, Scope]]:
    """Each trial with each scope that it is run at."""
    return [(name, scope) for name in names for scope in SCOPES.get(name, (Scope(),))]


def run_trial(
    plan: AuditPlan, name: str, scope: Scope, tell: Tell = silent
) -> tuple[pd.DataFrame, dict[str, Any]]:
    """The figures of a trial as a table, with details; a refusal is the detail `reason`."""
    try:
        outcome = _run(plan, name, scope, tell)
    except AttlasError as problem:
        reason = " ".join(str(problem).split())
        return pd.DataFrame(columns=list(COLUMNS)), {"reason": reason}
    rows = [
        (text, figure, float(value))
        for figure, values in outcome.figures.items()
        for text, value in zip(outcome.texts, values, strict=True)
    ]
    details = {
        "reason": None,
        "figures": list(outcome.figures),
        "texts": list(outcome.texts),
        "sentence": outcome.sentence,
        "ceilings": {figure: _ceiling_to_json(each) for figure, each in outcome.ceilings.items()},
        "plots": list(outcome.plots),
        "notes": list(outcome.notes),
    }
    return pd.DataFrame(rows, columns=list(COLUMNS)), plain(details)


def read_trial(frame: pd.DataFrame, details: Mapping[str, Any]) -> TrialOutcome:
    """A trial from its table and details."""
    figures = {
        name: frame["value"][frame["figure"] == name].to_numpy(dtype=np.float64)
        for name in details["figures"]
    }
    return TrialOutcome(
        figures,
        tuple(details["texts"]),
        details["sentence"],
        {name: _ceiling_from_json(each) for name, each in details["ceilings"].items()},
        tuple(details["plots"]),
        tuple(details["notes"]),
    )


def _run(plan: AuditPlan, name: str, scope: Scope, tell: Tell) -> TrialOutcome:
    trial, texts, settings = TRIALS[name], plan.texts, plan.settings
    if plan.training is not None and "training data" in trial.needs:
        return _learn_again(plan, name, scope, tell)
    is_slow = trial.cost != "cheap" or name in USE
    count = settings.texts_for_slowest if is_slow else settings.texts_for_expensive
    numbers, questions = texts.drawn(count), texts.ask_drawn(count)
    options: dict[str, Any] = {**REPEATS.get(scope, {}).get(name, {})}
    if name in USE and texts.gold is not None:
        options["gold"] = {index: texts.gold[number] for index, number in enumerate(numbers)}
    asked = fill(questions) if trial.fills else questions
    return trial.run(asked, scope, seed=settings.seed, **options).renumbered(numbers)


def _learn_again(plan: AuditPlan, name: str, scope: Scope, tell: Tell) -> TrialOutcome:
    """A trial that trains: it is tested on all texts, which costs little beside training."""
    texts, numbers = plan.texts, range(len(plan.texts))
    assert plan.training is not None
    options: dict[str, Any] = {"training": plan.training.examples, "seed": plan.settings.seed}
    known = {"gold": dict(enumerate(texts.gold or ())), "tell": tell}
    options |= {each: value for each, value in known.items() if each in TRIALS[name].options}
    return TRIALS[name].run(texts.ask(numbers), scope, **options).renumbered(numbers)


def _ceiling_to_json(ceiling: Any) -> Any:
    if isinstance(ceiling, np.ndarray):
        return [None if np.isnan(each) else float(each) for each in ceiling]
    return None if np.isnan(ceiling) else float(ceiling)


def _ceiling_from_json(stored: Any) -> Any:
    if isinstance(stored, list):
        return np.array([np.nan if each is None else each for each in stored])
    return float("nan") if stored is None else float(stored)
