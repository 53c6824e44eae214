"""The report of an audit, from all its tables."""

from collections import Counter
from collections.abc import Iterator
from dataclasses import replace
from time import time
from typing import Any

import numpy as np
import torch
import transformers
from numpy.typing import NDArray

from attlas.auditing.collected import Collected, wall_seconds
from attlas.auditing.plan import AuditPlan
from attlas.auditing.report.plots import (
    make_agreement,
    make_panels,
    make_removal_pairs,
    make_standings,
    make_unusual,
)
from attlas.auditing.report.sections import find_examples, make_table, make_trial_section
from attlas.auditing.verdict.advice import with_command
from attlas.auditing.verdict.findings import findings, plausibility
from attlas.auditing.verdict.verdict import as_figure, verdict
from attlas.auditing.work.figures import RIGHT
from attlas.errors import UsageError
from attlas.mathematics.intervals import clopper_pearson
from attlas.results.report import Report
from attlas.results.support.report_sections import DataRecord, LeftOutRow
from attlas.results.support.verdict import Verdict
from attlas.version import __version__

LISTED = 20  # rows that were left out
MOST_CLASSES = 6  # that are compared
LIMITS = (
    "A text with tokens removed is not a text the model was trained on: figures under removal "
    "hold as far as the removals agree.",
    "All figures are of this checkpoint and these texts; a claim about a kind of model needs "
    "several checkpoints.",
    "That other attention weights would give the same output does not make these unfaithful, and "
    "agreement with people says nothing of what the model does.",
)


def make_report(plan: AuditPlan, collected: Collected) -> Report:
    """The verdict and everything that it rests on."""
    texts, settings = plan.texts, plan.settings
    if not collected.tested_texts:
        raise UsageError("; ".join(["no token could be removed", *_refusals(collected)]))
    weights = _with_command(
        verdict(
            replace(collected.tested(), kinds=_kinds(plan, collected), model=texts.subject.name),
            settings.rules,
        ),
        plan,
    )
    agreement, mean_agreement = make_agreement(collected)
    pairs, standings = make_removal_pairs(collected), make_standings(collected)
    return Report(
        model=texts.subject.name,
        task=texts.subject.task.name if texts.subject.task else "",
        data=_data(plan, collected),
        verdict=weights,
        findings=findings(weights, mean_agreement, pairs, standings),
        table=make_table(collected),
        standings=standings,
        panels=make_panels(collected, plan.verdict_removals),
        agreement=agreement,
        removals=pairs,
        unusual=make_unusual(collected),
        examples=find_examples(plan, collected, weights.method, _best_reading(weights)),
        trials=tuple(make_trial_section(run, plan) for run in collected.trials),
        plausibility=plausibility(collected, weights.method),
        does_not_show=LIMITS,
        notes=(*texts.notes, *_refusals(collected)),
        settings=settings.to_dict(),
        versions={
            "attlas": __version__,
            "torch": torch.__version__,
            "transformers": transformers.__version__,
        },
        costs=tuple(collected.costs),
        seed=settings.seed,
        seconds=wall_seconds([*collected.spans, (plan.started, time())]),
        command=str(plan.command),
    )


def _with_command(weights: Verdict, plan: AuditPlan) -> Verdict:
    """The verdict whose next step is a command, if texts are too few and the data have more."""
    if weights.word != "too few texts" or weights.texts_needed is None:
        return weights
    more = plan.command.with_more(weights.texts_needed / weights.texts)
    if not more:
        return weights
    return replace(weights, next_step=with_command(weights.next_step, more))


def _kinds(plan: AuditPlan, collected: Collected) -> dict[str, NDArray[np.intp]]:
    """Groups of texts, by predicted class and by length, with places among the tested texts."""
    lengths = np.array([plan.texts.lengths[text] for text in collected.tested_texts])
    labels = collected.labels.reindex(collected.tested_texts).to_numpy()
    kinds = {f"predicted {name}": np.flatnonzero(labels == name) for name in _common(labels)}
    first, second = np.quantile(lengths, [1 / 3, 2 / 3], method="nearest").tolist()
    if len(lengths) >= 3 and first < second < lengths.max():
        kinds[f"up to {first} tokens"] = np.flatnonzero(lengths <= first)
        between = (lengths > first) & (lengths <= second)
        kinds[f"{first + 1} to {second} tokens"] = np.flatnonzero(between)
        kinds[f"more than {second} tokens"] = np.flatnonzero(lengths > second)
    return kinds


def _common(labels: NDArray[Any]) -> list[str]:
    """The most frequent classes, if there are several and not too many to compare."""
    counts = Counter(labels.tolist())
    return [name for name, _ in counts.most_common(MOST_CLASSES)] if len(counts) > 1 else []


def _best_reading(weights: Verdict) -> str:
    """The reading to show beside the weights."""
    readings = [*weights.better_readings, *weights.readings]
    return readings[0].method if readings else weights.method


def _refusals(collected: Collected) -> Iterator[str]:
    """What was left out and why; methods that a measure refuses for one reason share a line."""
    for name, reason in collected.refused.items():
        yield f"{name} was left out: {reason}"
    methods: dict[tuple[str, str], list[str]] = {}
    for (measure, method), reason in collected.unmeasured.items():
        methods.setdefault((measure, reason), []).append(method)
    for (measure, reason), names in methods.items():
        yield f"{measure} of {', '.join(names)} was left out: {reason}"


def _data(plan: AuditPlan, collected: Collected) -> DataRecord:
    texts, rows = plan.texts, collected.results
    right = rows[rows["measure"] == RIGHT]["value"].to_numpy(dtype=np.float64)
    accuracy = None
    if len(right):
        accuracy = as_figure(clopper_pearson(int(right.sum()), len(right)))
    reasons = Counter(each.reason for each in texts.left_out)
    left_out = [
        LeftOutRow(str(each.row), each.reason, each.shown) for each in texts.left_out[:LISTED]
    ]
    task = texts.subject.task
    labels = texts.subject.labels if task and task.name == "sequence classification" else []
    return DataRecord(
        plan.source,
        len(texts),
        tuple(labels),
        accuracy,
        dict(reasons.most_common()),
        tuple(left_out),
    )
