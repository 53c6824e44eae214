"""The verb `audit`: methods tested by measures over a data set, with a verdict."""

import json
import os
import tempfile
import warnings
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from os import PathLike
from pathlib import Path
from typing import Any

import torch

from attlas.auditing.collected import Collected, collect
from attlas.auditing.folder import PAGE, REPORT, RESULTS, Folder
from attlas.auditing.plan import AuditPlan, plan_audit
from attlas.auditing.records import keep_record
from attlas.auditing.report.report import make_report
from attlas.auditing.verdict.rules import Rules
from attlas.auditing.work.items import do_items, do_items_on_ray, work_items
from attlas.engine import Engine, engine_of
from attlas.errors import refuse_address
from attlas.models.asking.memory import noting_shortages
from attlas.models.load import load
from attlas.models.subject import Subject
from attlas.progress import Step, Watch
from attlas.results.report import Report
from attlas.verbs import verb


@verb("auditing")
def audit(
    subject: Subject | None = None,
    data: Any = "reviews",
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
    shuffles: int | None = None,
    texts_for_expensive: int | None = None,
    texts_for_slowest: int | None = None,
    pairs: int | None = None,
    retrain: Any = None,
    masked_finetune: Any = None,
    engine: str | Engine = "local",
    watch: Watch = lambda step: None,
    some: int | None = None,
    few: int | None = None,
) -> Report:
    """Ask whether the attention of a model may be read as an explanation of its predictions.

    Args:
        subject: The model; the built-in sentiment model by default.
        data: What `read_examples` takes: a file, a name, a DataFrame, a list. By default reviews.
        methods: Names of methods; all by default.
        measures: Names of measures; all by default.
        trials: Names of trials; by default all that need nothing but the texts. `[]`: none.
        out: A folder for the report, the figures of every text and a manifest. An audit that was
            stopped resumes from its folder.
        text: The column of the text.
        pair: The column of a second text.
        label: The column of the label.
        spans: The column of the words that people marked.
        split: The split of a data set that has several.
        count: Draw this many texts; all by default, 60 with `quick`.
        removal: How tokens are removed; by default "delete", "mask" and "knock_out", without the
            last with `quick`.
        truncate: Cut texts that are too long for the model; they are left out otherwise.
        quick: Use fewer methods, measures, trials and texts.
        seed: Decides everything that is drawn at random.
        rules: The thresholds of the verdict.
        shuffles: How often the scores of each text are shuffled for comparison; 5 by default.
        texts_for_expensive: On how many texts to run expensive methods, removal curves, the search
            for their best order, and cheap trials; 100 by default, 20 with `quick`. What the
            verdict rests on is computed on all texts.
        texts_for_slowest: On how many texts to run the slowest work: expensive removals, measures
            that run the method again and expensive trials; 100 by default, 20 with `quick`.
        pairs: In how many random orders, each with its reverse, the tokens of a text are removed;
            8 by default, 4 with `quick`.
        retrain: Labelled texts to train on, like `data`: copies of the model are then trained
            again without the tokens that methods name (the trial remove_and_retrain).
        masked_finetune: Labelled texts to train on, like `data`: a copy of the model then learns
            them with random words masked, so that removing words is nothing new to it, and the copy
            is audited (the objective masked).
        engine: "local", "ray", or an `attlas.Engine`: who does the work.
        watch: Called with a `Step` whenever a new piece of work begins.
        some: The old name of `texts_for_expensive`.
        few: The old name of `texts_for_slowest`.

    Example:
        >>> report = attlas.audit(attlas.load("sentiment"), "reviews", quick=True, out="audit")
        >>> report.verdict.word in ("supported", "partly", "not supported", "too few texts")
        True
    """
    chosen = engine_of(engine)
    if out is not None:
        refuse_address(out)
    if masked_finetune is not None:
        from attlas.training.finetune import masked_copy  # it loads the Trainer, which is slow

        place = None if out is None else copy_folder(out)
        subject = masked_copy(subject or load("sentiment"), masked_finetune, place, watch)
    plan = plan_audit(
        subject, data, methods, measures, trials,
        text=text, pair=pair, label=label, spans=spans, split=split, count=count,
        removal=removal, truncate=truncate, quick=quick, seed=seed, rules=rules,
        shuffles=shuffles, pairs=pairs, retrain=retrain,
        texts_for_expensive=_renamed("some", some, "texts_for_expensive", texts_for_expensive),
        texts_for_slowest=_renamed("few", few, "texts_for_slowest", texts_for_slowest),
    )  # fmt: skip
    try:
        return run(plan, out, watch, prepared_by(chosen, plan, watch))
    except KeyboardInterrupt as stopped:
        stopped.add_note(stopped_note(out))
        raise


def prepared_by(engine: Engine, plan: AuditPlan, watch: Watch) -> Callable[[Folder], None]:
    """What is done in the folder before this process does the work itself: by workers, all."""
    if engine.is_alone:
        return lambda folder: None
    return partial(do_items_on_ray, plan, engine, watch)


def stopped_note(out: str | PathLike[str] | None) -> str:
    """How an audit that was stopped goes on."""
    if out is None:
        return "nothing was kept: an audit with a folder (out=, --out) can be continued"
    return f"what is done is kept in {os.fspath(out)}; asked again, the audit goes on from there"


def _renamed(old: str, old_value: int | None, new: str, new_value: int | None) -> int | None:
    """The value of an argument that may still be given by its old name."""
    if old_value is None:
        return new_value
    warnings.warn(f"audit({old}=…) is now audit({new}=…)", FutureWarning, stacklevel=4)
    return old_value if new_value is None else new_value


def run(
    plan: AuditPlan,
    out: str | PathLike[str] | None = None,
    watch: Watch = lambda step: None,
    prepare: Callable[[Folder], None] = lambda folder: None,
) -> Report:
    """Do what is left of a plan and make its report.

    `prepare` is called with the folder of an unfinished audit before its work is done here.
    """
    with torch.inference_mode(False), _working_in(out, plan) as folder:
        if folder.done:
            known = _finished(folder)
            if known is not None:
                return known
            folder.begin_anew()
        with folder.noting_run(plan.started):
            prepare(folder)
            with noting_shortages() as found:
                do_items(plan, folder, watch)
            total = len(work_items(plan))
            watch(Step("the report", total, total))
            collected = collect(plan, folder)
            made = make_report(plan, collected)
            report = replace(made, notes=(*made.notes, *found.notes()))
            if out is not None:
                _save(report, collected, folder)
            page = None if out is None else folder.path / PAGE
            keep_record(report, plan.texts.subject, page)
            return report


def copy_folder(out: str | PathLike[str]) -> Path:
    """Where the copy of an audited model is written: beside the folder of the audit."""
    place = Path(out)
    return place.with_name(f"{place.name}_masked_model")


@contextmanager
def _working_in(out: str | PathLike[str] | None, plan: AuditPlan) -> Iterator[Folder]:
    """The user's folder, or a temporary one."""
    if out is not None:
        with Folder(out, plan.identity()) as folder:
            yield folder
        return
    with tempfile.TemporaryDirectory() as place, Folder(place, plan.identity()) as folder:
        yield folder


def _finished(folder: Folder) -> Report | None:
    """The report of a finished audit; None if what was written is gone, or was changed since."""
    record = folder.content(REPORT)
    if record is None or folder.content(RESULTS) is None:
        return None
    try:
        report = Report.from_dict(json.loads(record))
    except (ArithmeticError, AttributeError, LookupError, RecursionError, TypeError, ValueError):
        return None  # forged, with a digest that is right
    if folder.content(PAGE) is None:
        report.to_html(folder.path / PAGE)
    folder.remove_tables()  # those that a run that was killed at its end has left
    return report


def _save(report: Report, collected: Collected, folder: Folder) -> None:
    record = json.dumps(report.to_dict(), ensure_ascii=False, allow_nan=False)
    summary = {
        "verdict": report.verdict.word,
        "versions": dict(report.versions),
        "seconds": report.seconds,
        "seed": report.seed,
    }
    folder.finish(collected.results, summary, {REPORT: record, PAGE: report.html()})
    folder.remove_tables()
