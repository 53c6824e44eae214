"""The report of an audit, from all its tables."""

from collections import Counter
from collections.abc import Iterator
from time import time

import numpy as np
import torch
import transformers

from attlas.auditing.collected import Collected, wall_seconds
from attlas.auditing.plan import AuditPlan
from attlas.auditing.report.plots import (
    make_agreement,
    make_panels,
    make_removal_pairs,
    make_standings,
)
from attlas.auditing.report.sections import find_examples, make_table, make_trial_section
from attlas.auditing.verdict.findings import findings, plausibility
from attlas.auditing.verdict.p_values import adjust, hold_out
from attlas.auditing.verdict.verdict import as_figure, verdict
from attlas.auditing.work.figures import RIGHT
from attlas.auditing.work.trials import USE
from attlas.errors import UsageError
from attlas.mathematics.intervals import Estimate, clopper_pearson
from attlas.results.report import Report
from attlas.results.support.report_sections import DataRecord, LeftOutRow
from attlas.results.verdict import Verdict
from attlas.trials import attention_use
from attlas.version import __version__

LISTED = 20  # rows that were left out
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
    start, texts, settings = time(), plan.texts, plan.settings
    removals = [each for each in settings.verdict_removals if each in collected.removals]
    if not removals:
        raise UsageError("; ".join(["no token could be removed", *_refusals(collected)]))
    weights = _verdict(plan, collected, removals)
    table = make_table(collected)
    agreement, mean_agreement = make_agreement(collected)
    pairs = make_removal_pairs(collected)
    held_out = hold_out(collected, removals)
    lines, marked = adjust(
        findings(weights, mean_agreement, pairs, table, held_out),
        plausibility(held_out, weights.method),
    )
    return Report(
        model=texts.subject.name,
        task=texts.subject.task.name if texts.subject.task else "",
        data=_data(plan, collected),
        verdict=weights,
        findings=lines,
        table=table,
        standings=make_standings(collected),
        panels=make_panels(collected, removals),
        agreement=agreement,
        removals=pairs,
        examples=find_examples(
            texts, collected, weights.method, _best_reading(weights), removals[0]
        ),
        trials=tuple(make_trial_section(run, plan) for run in collected.trials),
        plausibility=marked,
        does_not_show=LIMITS,
        notes=(*texts.notes, *_refusals(collected)),
        settings={**settings.to_dict(), "delta": settings.rules.delta},
        versions={
            "attlas": __version__,
            "torch": torch.__version__,
            "transformers": transformers.__version__,
        },
        costs=tuple(collected.costs),
        seed=settings.seed,
        seconds=wall_seconds([*collected.spans, (start, time())]),
        command=plan.command,
    )


def _verdict(plan: AuditPlan, collected: Collected, removals: list[str]) -> Verdict:
    evidence, groups = collected.evidence(removals)
    return verdict(
        evidence,
        collected.families,
        circular={pair for pair in collected.circular() if pair[1] in removals},
        used=_use(collected),
        rules=plan.settings.rules,
        groups=groups,
        seed=plan.settings.seed,
    )


def _use(collected: Collected) -> Estimate | None:
    """How much the attention is used; None if no trial tested it."""
    outcomes = [run.outcome for run in collected.trials if run.name in USE and run.outcome]
    return attention_use(*outcomes) if outcomes else None


def _best_reading(weights: Verdict) -> str:
    """The reading to show beside the weights."""
    readings = [*weights.better_readings, *weights.readings]
    return readings[0].method if readings else weights.reference or weights.method


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
