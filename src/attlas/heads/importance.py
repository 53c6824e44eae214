"""The verb `head_importance`: how much each head matters for the gold label, over a data set."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
import torch

from attlas.data import read_examples
from attlas.errors import ModelError, UnknownNameError
from attlas.explaining.method_call import MethodCall, origin
from attlas.heads.labelled_questions import LabelledQuestions, ask_about_labels
from attlas.heads.rankings import RANKINGS, Ranking
from attlas.mathematics.intervals import DRAWS, LEVEL
from attlas.methods import METHODS
from attlas.models.asking.memory import in_fitting_batches, telling_shortages
from attlas.models.asking.question import Question
from attlas.models.encoding.request import Request
from attlas.models.subject import Subject, check_subject
from attlas.progress import Step, Watch
from attlas.results import Origin
from attlas.results.head_importance import HeadImportance
from attlas.shapes import HeadDraws, HeadScores, HeadTable
from attlas.verbs import verb

VERB = "head_importance"


@verb("ranking heads")
@telling_shortages
def head_importance(
    subject: Subject,
    data: Any,
    by: str = "attattr",
    *,
    text: str | None = None,
    pair: str | None = None,
    label: str | None = None,
    spans: str | None = None,
    split: str | None = None,
    count: int | None = None,
    truncate: bool = False,
    watch: Watch = lambda step: None,
    **options: Any,
) -> HeadImportance:
    """Measure how much each head matters for the gold labels of these texts.

    `data` and the arguments from `text` to `count` are those of `read_examples`; every text needs a
    label. `by` is the name of a ranking (`attlas.list_rankings()`), and `options` are its own:
    `steps` of attattr, `seed` of random.
    """
    check_subject(subject, VERB)
    chosen = RANKINGS[by]
    read = read_examples(
        data, text=text, pair=pair, label=label, spans=spans, split=split, count=count
    )
    with torch.inference_mode(False):
        asked = ask_about_labels(subject, read.labelled(VERB), truncate=truncate)
        return rank(asked, chosen, options, watch)


def rank(
    asked: LabelledQuestions, chosen: Ranking, options: Mapping[str, Any], watch: Watch
) -> HeadImportance:
    """The importance of every head by one ranking."""
    for name in options:
        if name not in chosen.options:
            raise UnknownNameError(f"option of {chosen.name}", name, chosen.options)
    used = {**chosen.options, **options}
    values = score_each(asked, chosen, used, watch)
    sites = asked.subject.sites
    means = _means(values)
    final = means if chosen.finish is None else chosen.finish(means, sites)
    low, high = np.quantile(final[1:], [(1 - LEVEL) / 2, (1 + LEVEL) / 2], axis=0)
    made = ranking_origin(asked.subject, chosen, used)
    return HeadImportance(sites, final[0], low, high, len(asked), made, asked.notes())


def score_each(
    asked: LabelledQuestions, chosen: Ranking, options: Mapping[str, Any], watch: Watch
) -> HeadTable:
    """The score of every head in each text."""
    subject, done = asked.subject, 0
    rows: list[HeadScores] = []
    too_large = f"one text does not fit on {subject.device}: load it in half precision"

    def score(batch: Question) -> Callable[[Sequence[int]], HeadScores]:
        return lambda chosen_rows: chosen.score_heads(batch.rows(chosen_rows), **options)

    for question in asked.questions:
        watch(Step(f"ranking heads by {chosen.name}", done, len(asked)))
        for batch in question.batches_holding(subject.sites):
            rows += in_fitting_batches(range(len(batch)), score(batch), too_large)
        done += len(question)
    table = torch.cat([each.detach().double().cpu() for each in rows]).numpy()
    if not np.isfinite(table).all():
        raise ModelError(
            f"{chosen.name} gave scores that are not finite for {subject.name}; try float32"
        )
    return table


def _means(values: HeadTable, seed: int = 0) -> HeadDraws:
    """The mean over all examples, followed by means over resampled examples."""
    count = len(values)
    drawn = np.random.default_rng(seed).multinomial(count, [1 / count] * count, size=DRAWS)
    return np.concatenate([values.mean(axis=0, keepdims=True), drawn @ values / count])


def ranking_origin(subject: Subject, chosen: Ranking, options: Mapping[str, Any]) -> Origin:
    """How a ranking was made: everything that is needed to compute it again."""
    made = origin(MethodCall(METHODS["attattr"], Request(), {}), subject, {}, VERB)
    return replace(
        made,
        method=chosen.name,
        signed=chosen.name == "accuracy_difference",
        paper=chosen.paper,
        reading=chosen.reading,
        options=options,
        asked={},
    )
