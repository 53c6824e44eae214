"""The report of an audit, from the tables of all its parts."""

from collections import Counter
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
import torch
import transformers

from attlas.auditing.report.examples import find_examples
from attlas.auditing.report.figures import (
    make_agreement,
    make_panels,
    make_removal_pairs,
    make_standings,
)
from attlas.auditing.report.tables import Found, make_table
from attlas.auditing.settings import Settings
from attlas.auditing.texts import Texts
from attlas.auditing.verdict.findings import findings, plausibility
from attlas.auditing.verdict.p_values import adjust, hold_out
from attlas.auditing.verdict.verdict import figure, verdict
from attlas.errors import UsageError
from attlas.mathematics.intervals import Estimate, clopper_pearson
from attlas.results.report import Report
from attlas.results.support.report_sections import Cost, DataRecord, LeftOutRow, TrialSection
from attlas.version import __version__

LISTED = 20
RIGHT = "right"  # the row that says whether the model is right on a text
LIMITS = (
    "A text with tokens removed is not a text the model was trained on: figures under removal "
    "hold as far as the removals agree.",
    "All figures are of this checkpoint and these texts; a claim about a kind of model needs "
    "several checkpoints.",
    "That other attention weights would give the same output does not make these unfaithful, and "
    "agreement with people says nothing of what the model does.",
)


@dataclass(frozen=True, eq=False)
class Gathered:
    """All that was found, and what it took."""

    values: pd.DataFrame
    curves: pd.DataFrame
    agreement: pd.DataFrame
    scores: pd.DataFrame
    refused: Mapping[str, str]
    trials: Sequence[TrialSection]
    used: Estimate | None
    costs: Sequence[Cost]


def make_report(
    texts: Texts, name: str, settings: Settings, gathered: Gathered, command: str
) -> Report:
    """The verdict and all that it rests on."""
    values = gathered.values[gathered.values["measure"] != RIGHT]
    found = Found(
        values,
        gathered.curves,
        gathered.agreement,
        texts.groups,
        gathered.refused,
        settings.seed,
    )
    judged_by = [each for each in settings.judged_by if each in found.removals]
    if not judged_by:
        raise UsageError("; ".join(["no token could be removed", *_refusals(gathered.refused)]))
    evidence, groups = found.evidence(judged_by)
    said = verdict(
        evidence,
        found.families,
        circular={pair for pair in found.circular() if pair[1] in judged_by},
        used=gathered.used,
        rules=settings.rules,
        groups=groups,
        seed=settings.seed,
    )
    table = make_table(found)
    agreement, alike = make_agreement(found)
    pairs = make_removal_pairs(found)
    held = hold_out(found, judged_by)
    lines, apart = adjust(
        findings(said, alike, pairs, table, held), plausibility(held, said.method)
    )
    better = [*said.better_readings, *said.readings]
    other = better[0].method if better else said.reference or said.method
    return Report(
        model=texts.subject.name,
        task=texts.subject.task.name if texts.subject.task else "",
        data=_data(texts, name, gathered.values),
        verdict=said,
        findings=lines,
        table=table,
        standings=make_standings(found),
        panels=make_panels(found, judged_by),
        agreement=agreement,
        removals=pairs,
        examples=find_examples(texts, found, gathered.scores, said.method, other, judged_by[0]),
        trials=tuple(gathered.trials),
        plausibility=apart,
        does_not_show=LIMITS,
        notes=(*texts.notes, *_refusals(gathered.refused)),
        settings={**settings.to_dict(), "delta": settings.rules.delta},
        versions={
            "attlas": __version__,
            "torch": torch.__version__,
            "transformers": transformers.__version__,
        },
        costs=tuple(gathered.costs),
        seed=settings.seed,
        seconds=sum(each.seconds for each in gathered.costs),
        command=command,
    )


def _refusals(refused: Mapping[str, str]) -> list[str]:
    return [f"{name} was left out: {reason}" for name, reason in refused.items()]


def _data(texts: Texts, name: str, values: pd.DataFrame) -> DataRecord:
    right = values[values["measure"] == RIGHT]["value"].to_numpy(dtype=np.float64)
    accuracy = None
    if len(right):
        accuracy = figure(clopper_pearson(int(right.sum()), len(right)))
    reasons = Counter(each.reason for each in texts.left_out)
    rows = [LeftOutRow(str(each.row), each.reason, each.shown) for each in texts.left_out[:LISTED]]
    task: Any = texts.subject.task
    labels = texts.subject.labels if task and task.name == "sequence classification" else []
    return DataRecord(
        name, len(texts), tuple(labels), accuracy, dict(reasons.most_common()), tuple(rows)
    )
