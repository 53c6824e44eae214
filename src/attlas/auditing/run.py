"""The verb `audit`: methods held to measures over a data set, part by part, and the verdict."""

import json
import tempfile
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from functools import partial
from os import PathLike
from time import perf_counter
from typing import Any

import pandas as pd
import torch

from attlas.auditing.folder.folder import Folder
from attlas.auditing.planning import Plan, prepare
from attlas.auditing.report.reporting import RIGHT, Gathered, make_report
from attlas.auditing.texts import Texts
from attlas.auditing.verdict.rules import Rules
from attlas.auditing.work.cases import explain_part
from attlas.auditing.work.judged import COLUMNS, Figures, judge_part
from attlas.auditing.work.robustness import ask_again
from attlas.auditing.work.trying import part_name, scoped, try_all, try_one
from attlas.models.subject import Subject
from attlas.progress import Step, Tell, Watch, silent
from attlas.results.report import Report
from attlas.results.support.report_sections import Cost
from attlas.trials import TRIALS, Scope
from attlas.views import write_whole

DATA = "reviews"
TABLES = ("values", "curves", "agreement", "scores")
REPORT = "report.json"


def audit(
    subject: Subject | None = None,
    data: Any = DATA,
    methods: Sequence[str] | None = None,
    measures: Sequence[str] | None = None,
    trials: Sequence[str] | None = None,
    *,
    out: str | PathLike[str] | None = None,
    text: str | None = None,
    pair: str | None = None,
    label: str | None = None,
    spans: str | None = None,
    split: str | None = None,
    count: int | None = None,
    removal: Sequence[str] | None = None,
    truncate: bool = False,
    quick: bool = False,
    seed: int = 0,
    rules: Rules | None = None,
    watch: Watch = lambda step: None,
    **sizes: int,
) -> Report:
    """Ask whether the attention of a model may be read as an explanation of its predictions.

    The embedded sentiment model and reviews if nothing is given. `data` is whatever `read_examples`
    takes: a file, a name, a DataFrame, a list; `text`, `pair`, `label` and `spans` are its columns.
    `methods`, `measures`, `trials` and `removal` are names, all if not given; `quick` takes fewer,
    and 60 texts. `out` is a folder: the report, the figures of every text and a manifest are
    written there, and an audit that was stopped goes on where it was. `sizes` are `shuffles` of
    the scores of a text, `some` texts for what is dear and `few` for what is dearer.
    """
    plan = prepare(
        subject, data, methods, measures, trials,
        text=text, pair=pair, label=label, spans=spans, split=split, count=count,
        removal=removal, truncate=truncate, quick=quick, seed=seed, rules=rules, sizes=sizes,
    )  # fmt: skip
    return run(plan, out, watch)


def run(
    plan: Plan, out: str | PathLike[str] | None = None, watch: Watch = lambda step: None
) -> Report:
    """Carry a plan out, or the rest of it."""
    with torch.inference_mode(False), working_in(out, plan) as folder:
        return carry_out(plan, folder, watch, keep=out is not None)


@contextmanager
def working_in(out: str | PathLike[str] | None, plan: Plan) -> Iterator[Folder]:
    """The folder to work in; without one, a place that is gone afterwards."""
    if out is not None:
        with Folder(out, plan.identity()) as folder:
            yield folder
        return
    with tempfile.TemporaryDirectory() as place, Folder(place, plan.identity()) as folder:
        yield folder


def carry_out(plan: Plan, folder: Folder, watch: Watch, keep: bool) -> Report:
    """All that is not in the folder yet, then the report, which is written there to be kept."""
    kept = folder.path / REPORT
    if folder.done and kept.is_file():
        return Report.from_dict(json.loads(kept.read_text("utf-8")))
    gathered = _gather(plan, folder, watch)
    report = make_report(plan.texts, plan.read.source, plan.settings, gathered, plan.command)
    if keep:
        write_whole(kept, json.dumps(report.to_dict(), ensure_ascii=False, allow_nan=False))
        report.to_html(folder.path / "report.html")
        told = {"verdict": report.verdict.word, "versions": dict(report.versions)}
        folder.finish(gathered.values, {**told, "seconds": report.seconds, "seed": report.seed})
        folder.remove_parts()
    return report


def _gather(plan: Plan, folder: Folder, watch: Watch) -> Gathered:
    """All parts of the work, those that are done read again."""
    tables: dict[str, list[pd.DataFrame]] = {name: [] for name in TABLES}
    refused: dict[str, str] = {}
    done, seconds = 0, {"explaining and judging": 0.0, "asking again": 0.0}
    for number, texts in enumerate(plan.parts):
        tell = _telling(watch, f"texts, part {number + 1} of {len(plan.parts)}", done, plan)
        found, told = _part(plan, folder, number, texts, refused, tell)
        refused |= told["refused"]
        seconds["explaining and judging"] += told["seconds"]
        for name, table in found.items():
            tables[name].append(table)
        done += 1
    for measure, method in plan.again:
        watch(Step(f"{measure.name} of {method}", done, plan.steps()))
        if method not in refused:
            table, spent = _again(plan, folder, measure.name, method)
            tables["values"].append(table)
            seconds["asking again"] += spent
        done += 1
    tried = try_all(plan.texts, plan.settings, folder, watch, done, plan.steps())
    watch(Step("the report", plan.steps(), plan.steps()))
    joined = {name: _joined(parts) for name, parts in tables.items()}
    costs = [Cost(name, spent, len(plan.texts)) for name, spent in seconds.items() if spent]
    return Gathered(
        **joined,
        refused=refused,
        trials=tried.trials,
        used=tried.used,
        costs=[*costs, *tried.costs],
    )


def _telling(watch: Watch, where: str, done: int, plan: Plan) -> Tell:
    """Say what is being done within a part of the work."""
    watch(Step(where, done, plan.steps()))
    return lambda what: watch(Step(f"{where}: {what}", done, plan.steps()))


@dataclass(frozen=True)
class Piece:
    """A part of the work that depends on no other: the name of its file, and how it is done."""

    name: str
    what: str
    work: Callable[[], object]


def pieces(plan: Plan, folder: Folder) -> list[Piece]:
    """All of the work but the report, the largest parts first."""
    parts = [
        Piece(
            f"values {number:05d}",
            f"texts, part {number + 1} of {len(plan.parts)}",
            partial(_part, plan, folder, number, texts, {}, silent),
        )
        for number, texts in reversed(list(enumerate(plan.parts)))
    ]
    trials = [
        Piece(
            part_name(name, scope),
            f"trial: {name}",
            partial(try_one, plan.texts, plan.settings, folder, name, scope),
        )
        for name, scope in sorted(scoped(plan.settings.trials), key=_is_cheap)
    ]
    again = [
        Piece(
            f"again {measure.name} {method}",
            f"{measure.name} of {method}",
            partial(_again, plan, folder, measure.name, method),
        )
        for measure, method in plan.again
    ]
    return [*parts, *trials, *again]


def _is_cheap(trial: tuple[str, Scope]) -> bool:
    return TRIALS[trial[0]].cost == "cheap"


def _joined(parts: Sequence[pd.DataFrame]) -> pd.DataFrame:
    full = [part for part in parts if len(part)]
    return pd.concat(full or parts[:1], ignore_index=True)


def _part(
    plan: Plan,
    folder: Folder,
    number: int,
    texts: Sequence[int],
    refused: Mapping[str, str],
    tell: Tell,
) -> tuple[dict[str, pd.DataFrame], dict[str, Any]]:
    """The tables of some texts, worked out or read; the values are written last."""
    names = {table: f"{table} {number:05d}" for table in TABLES}
    if all(folder.has(name) for name in names.values()):
        read = {table: folder.read(name) for table, name in names.items()}
        return {table: frame for table, (frame, _) in read.items()}, read["values"][1]
    start = perf_counter()
    explained = explain_part(plan.texts, texts, plan.settings, refused, tell)
    found = judge_part(explained, plan.texts, plan.settings, tell)
    frames = _frames(found, _right(plan.texts, explained.texts))
    told = {"refused": dict(found.refused), "seconds": perf_counter() - start}
    for table in reversed(TABLES):
        folder.write(names[table], frames[table], told if table == "values" else {})
    return frames, told


def _frames(found: Figures, right: pd.DataFrame) -> dict[str, pd.DataFrame]:
    values = _joined([found.values, right])
    return {
        "values": values,
        "curves": found.curves,
        "agreement": found.agreement,
        "scores": found.scores,
    }


def _right(texts: Texts, judged: Sequence[Any]) -> pd.DataFrame:
    """Whether the model is right on each text, where that is known."""
    if texts.gold is None:
        return pd.DataFrame(columns=list(COLUMNS))
    labels = texts.subject.labels
    rows = [
        (each.number, "", RIGHT, "", float(name == labels[texts.gold[each.number]]), float("nan"))
        for each in judged
        for name in (each.question.targets[0].name,)
    ]
    return pd.DataFrame(rows, columns=list(COLUMNS))


def _again(plan: Plan, folder: Folder, measure: str, method: str) -> tuple[pd.DataFrame, float]:
    name = f"again {measure} {method}"
    if folder.has(name):
        frame, told = folder.read(name)
        return frame, told["seconds"]
    start = perf_counter()
    chosen = next(each for each, _ in plan.again if each.name == measure)
    frame, reason = ask_again(plan.texts, plan.settings, chosen, method)
    spent = perf_counter() - start
    folder.write(name, frame, {"seconds": spent, "reason": reason})
    return frame, spent
