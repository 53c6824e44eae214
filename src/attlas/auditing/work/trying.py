"""The trials of an audit: experiments on the attention itself, each on some of the texts."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from time import perf_counter
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from attlas.auditing.folder.folder import Folder
from attlas.auditing.settings import Settings
from attlas.auditing.texts import Texts
from attlas.auditing.verdict.verdict import figure
from attlas.errors import AttlasError
from attlas.mathematics.intervals import Estimate, bootstrap_means
from attlas.models.asking.filling import fill
from attlas.progress import Step, Watch
from attlas.results.support.files import plain
from attlas.results.support.report_sections import Cost, TrialFigure, TrialSection
from attlas.shapes import TextValues
from attlas.trials import TRIALS, Scope, TrialOutcome, used

USE = ("permutation", "uniform")  # whether the attention is used at all is told by these
EVERYWHERE = Scope("all")
SCOPES = {
    **{name: (Scope(), EVERYWHERE) for name in USE},
    "adversarial_keys": (EVERYWHERE,),
    "head_patterns": (EVERYWHERE,),
}
REPEATS = {EVERYWHERE: {"permutation": {"repeats": 20}}}  # each is a pass of the whole model


@dataclass(frozen=True, eq=False)
class Attempts:
    """What the trials found, whether the attention is used at all, and what they took."""

    trials: Sequence[TrialSection]
    used: Estimate | None
    costs: Sequence[Cost]


def try_all(
    texts: Texts, settings: Settings, folder: Folder, watch: Watch, done: int, total: int
) -> Attempts:
    """Run every trial that is asked for; those that are done are read again."""
    use: list[TrialOutcome] = []
    shown: list[TrialSection] = []
    costs: list[Cost] = []
    for name, scope in scoped(settings.trials):
        place = settings.trials.index(name)
        watch(Step(f"trial: {name}", done + place, total))
        tried, told = try_one(texts, settings, folder, name, scope)
        if tried is None:
            shown.append(_refused(name, scope, told["reason"]))
            continue
        if name in USE:
            use.append(tried)
        shown.append(_shown(name, scope, tried, texts, settings))
        costs.append(Cost(f"trial {name}, {scope.kind}", told["seconds"], len(tried.texts)))
    return Attempts(shown, used(*use) if use else None, costs)


def scoped(names: Sequence[str]) -> list[tuple[str, Scope]]:
    """Each trial with each scope that it is run at."""
    return [(name, scope) for name in names for scope in SCOPES.get(name, (Scope(),))]


def part_name(name: str, scope: Scope) -> str:
    """The name of the part that a trial is kept as."""
    return f"trial {name} {scope.kind}"


def try_one(
    texts: Texts, settings: Settings, folder: Folder, name: str, scope: Scope
) -> tuple[TrialOutcome | None, dict[str, Any]]:
    """Run a trial, or read what it found; without a result there is a reason in what is told."""
    part = part_name(name, scope)
    if folder.has(part):
        frame, told = folder.read(part)
        return (_read(frame, told) if told["reason"] is None else None), told
    start = perf_counter()
    told = {"reason": None}
    tried = None
    try:
        tried = _run(texts, settings, name, scope)
    except AttlasError as problem:
        told["reason"] = " ".join(str(problem).split())
    told["seconds"] = perf_counter() - start
    frame, more = _written(tried)
    folder.write(part, frame, {**told, **more})
    return tried, {**told, **more}


def _run(texts: Texts, settings: Settings, name: str, scope: Scope) -> TrialOutcome:
    trial = TRIALS[name]
    is_dear = trial.cost == "expensive" or name in USE
    count = settings.few if is_dear else settings.some
    numbers, questions = texts.drawn(count), texts.ask_drawn(count)
    options: dict[str, Any] = {**REPEATS.get(scope, {}).get(name, {})}
    if name in USE and texts.gold is not None:
        options["gold"] = {local: texts.gold[number] for local, number in enumerate(numbers)}
    asked = fill(questions) if trial.fills else questions
    tried = trial.run(asked, scope, seed=settings.seed, **options)
    order = np.argsort(tried.texts)  # whatever batches they were in
    return TrialOutcome(
        {figure: values[order] for figure, values in tried.figures.items()},
        tuple(numbers[tried.texts[place]] for place in order),
        tried.sentence,
        {figure: _in_order(most, order) for figure, most in tried.ceilings.items()},
        tried.plots,
        tried.notes,
        tried.details,
    )


def _in_order(ceiling: float | TextValues, order: NDArray[np.intp]) -> float | TextValues:
    return ceiling[order] if isinstance(ceiling, np.ndarray) else ceiling


def _written(tried: TrialOutcome | None) -> tuple[pd.DataFrame, dict[str, Any]]:
    """A trial as a table and what goes with it."""
    columns = ["text", "figure", "value"]
    if tried is None:
        return pd.DataFrame(columns=columns), {}
    rows = [
        (text, name, float(value))
        for name, values in tried.figures.items()
        for text, value in zip(tried.texts, values, strict=True)
    ]
    told = {
        "texts": list(tried.texts),
        "sentence": tried.sentence,
        "ceilings": {name: _listed(each) for name, each in tried.ceilings.items()},
        "plots": list(tried.plots),
        "notes": list(tried.notes),
    }
    return pd.DataFrame(rows, columns=columns), plain(told)


def _listed(ceiling: Any) -> Any:
    if isinstance(ceiling, np.ndarray):
        return [None if np.isnan(each) else float(each) for each in ceiling]
    return None if np.isnan(ceiling) else float(ceiling)


def _read(frame: pd.DataFrame, told: Mapping[str, Any]) -> TrialOutcome:
    figures = {
        str(name): own["value"].to_numpy(dtype=np.float64)
        for name, own in frame.groupby("figure", sort=False)
    }
    ceilings = {name: _ceiling(each) for name, each in told["ceilings"].items()}
    return TrialOutcome(
        figures,
        tuple(told["texts"]),
        told["sentence"],
        ceilings,
        tuple(told["plots"]),
        tuple(told["notes"]),
    )


def _ceiling(stored: Any) -> Any:
    if isinstance(stored, list):
        return np.array([np.nan if each is None else each for each in stored])
    return float("nan") if stored is None else float(stored)


def _shown(
    name: str, scope: Scope, tried: TrialOutcome, texts: Texts, settings: Settings
) -> TrialSection:
    groups = None if texts.groups is None else texts.groups[list(tried.texts)]
    columns = np.stack([*tried.figures.values()], axis=1)
    means = bootstrap_means(columns.astype(np.float64), settings.seed, groups)
    figures = tuple(
        TrialFigure(each, figure(mean), _most(tried.ceilings.get(each)))
        for each, mean in zip(tried.figures, means, strict=True)
    )
    limit = TRIALS[name].does_not_show
    sentence = " ".join([tried.sentence, *tried.notes])
    return TrialSection(name, str(scope), sentence, figures, limit, tuple(tried.plots))


def _most(ceiling: Any) -> float | None:
    if ceiling is None or np.isnan(ceiling).all():
        return None
    return float(np.nanmean(ceiling))


def _refused(name: str, scope: Scope, reason: str) -> TrialSection:
    return TrialSection(name, str(scope), f"It could not be run: {reason}.", (), "")
