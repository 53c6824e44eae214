"""The figures of a batch of texts: each measure of all scores, under each removal of tokens."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd

from attlas.auditing.plan import AuditPlan
from attlas.auditing.work.drafts import Drafts
from attlas.auditing.work.explained import CONTROLS, SHUFFLED, Explained, ExplainedText
from attlas.auditing.work.removed_tokens import RemovedTokens, mean_of_known
from attlas.auditing.work.where import WHERE, moved_rows, where_rows
from attlas.errors import AttlasError
from attlas.mathematics.rank_agreement import (
    kendall_matrix,
    rank_biased_overlap_matrix,
    top_overlap_matrix,
)
from attlas.measures import NOTHING
from attlas.progress import Tell, silent

TOP_SHARE = 0.2  # of the tokens, to count how many two methods have in common
RIGHT = "right"  # the "measure" that says whether the model is right on a text
COLUMNS = ("text", "method", "measure", "removal", "value", "shuffled")
_Row = tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class Figures:
    """What measures say of a batch of texts, as the tables that are written to disk."""

    values: pd.DataFrame
    curves: pd.DataFrame
    agreement: pd.DataFrame
    scores: pd.DataFrame
    where: pd.DataFrame  # what the verdict rests on
    refused: Mapping[str, str]  # reasons by method or removal


def measure_batch(
    explained: Explained, plan: AuditPlan, drafts: Drafts, tell: Tell = silent
) -> Figures:
    """Apply every measure to the scores of a batch, one removal after the other."""
    rows = [row for text in explained.texts for row in _without_removal(text, plan)]
    curves: list[_Row] = []
    refused = dict(explained.refused)
    tell("shuffled attention")
    where: list[_Row] = [*moved_rows(explained, plan)]
    for how in plan.removals:
        texts = [each for each in explained.texts if _is_removed_from(each, how, plan)]
        if not texts:
            continue
        tell(f"tokens removed by {how}")
        try:
            removed = RemovedTokens(explained.questions, how, texts, plan, drafts)
        except AttlasError as problem:
            refused[how] = " ".join(str(problem).split())
            continue
        for text in texts:
            own_rows, own_curves = removed.rows(text)
            rows += own_rows
            curves += own_curves
            if how in plan.verdict_removals:
                where += where_rows(text, how, removed.erasures)
            removed.erasures.forget(text.index)
    rows += _right(explained.texts, plan)
    return Figures(
        pd.DataFrame(rows, columns=list(COLUMNS)),
        pd.DataFrame(curves, columns=["text", "method", "measure", "removal", "share", "value"]),
        _agreement(explained.texts),
        _scores(explained.texts),
        pd.DataFrame(where, columns=list(WHERE)),
        refused,
    )


def _is_removed_from(text: ExplainedText, how: str, plan: AuditPlan) -> bool:
    if len(text.content) < 2:
        return False
    rank = int(plan.texts.ranks[text.number])
    return how in plan.verdict_removals or how in plan.settings.removals_on(rank)


def _without_removal(text: ExplainedText, plan: AuditPlan) -> Iterator[_Row]:
    """The figures of the measures that only compare scores with the marks of people."""
    if text.marks is None:
        return
    edited = bool(plan.texts.examples[text.number].fields.get("revised_text"))
    for measure in plan.settings.measures_of_scores:
        if measure.ways is not None or measure.value is None:
            continue
        if "edits" in measure.needs and not edited:
            continue
        drawn = text.shuffles(plan.settings.shuffles)
        chance = mean_of_known([measure.value(each, NOTHING, NOTHING) for each in drawn])
        for name, case in text.cases.items():
            value = measure.value(case, NOTHING, NOTHING)
            yield text.number, name, measure.name, "", value, chance
        yield text.number, SHUFFLED, measure.name, "", chance, chance


def _right(texts: Sequence[ExplainedText], plan: AuditPlan) -> Iterator[_Row]:
    """Whether the model is right on each text, if the labels are known."""
    gold, labels = plan.texts.gold, plan.texts.subject.labels
    if gold is None:
        return
    for text in texts:
        is_right = text.question.targets[0].name == labels[gold[text.number]]
        yield text.number, "", RIGHT, "", float(is_right), float("nan")


def _agreement(texts: Sequence[ExplainedText]) -> pd.DataFrame:
    """How similar the scores of every two methods are on each text."""
    rows = []
    for text in texts:
        names = [name for name in text.scores if name not in CONTROLS]
        if len(text.content) < 2 or len(names) < 2:
            continue
        scores = np.stack([text.scores[name] for name in names])
        top = max(1, round(TOP_SHARE * len(text.content)))
        matrices = (
            kendall_matrix(scores),
            top_overlap_matrix(scores, top),
            rank_biased_overlap_matrix(scores),
        )
        for one in range(len(names)):
            for other in range(one):
                values = [float(matrix[one, other]) for matrix in matrices]
                rows.append((text.number, names[one], names[other], *values))
    return pd.DataFrame(rows, columns=["text", "one", "other", "kendall", "top", "overlap"])


def _scores(texts: Sequence[ExplainedText]) -> pd.DataFrame:
    rows = [
        (text.number, name, scores.astype(np.float32).tolist())
        for text in texts
        for name, scores in text.scores.items()
        if name not in CONTROLS
    ]
    return pd.DataFrame(rows, columns=["text", "method", "scores"])
