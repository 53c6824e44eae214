"""The ceiling of a trial: how far the answer moves if the attention carries nothing of the text.

The output of the site is replaced by its mean over all texts and counted rows. If even that changes
nothing, the site is not used.
"""

from collections.abc import Iterator, Mapping, Sequence

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attlas.models.asking.question import Question
from attlas.models.asking.reading import fold_attention
from attlas.models.intervening.ablating import ablating, mixed_values
from attlas.models.tap.call import Call
from attlas.models.tap.edits import Edit
from attlas.shapes import Attention, HeadOutput, Visible
from attlas.trials.rewriting.rewritten_answers import clean_edits
from attlas.trials.support.outputs import distributions, total_variation
from attlas.trials.support.scope import OpenSite, Scope

Means = Mapping[str, HeadOutput]  # by site; a site whose values cannot be read has none


def find_ablations(
    questions: Sequence[Question], scope: Scope, opened: Sequence[Sequence[OpenSite]]
) -> tuple[list[NDArray[np.float64]], bool]:
    """For each scope in turn, how far the answer to each text moves, `[text]`.

    Also returns whether means were put in: if the values of a model cannot be read, its attention
    is removed instead. A single text has no mean, and the figure is NaN.
    """
    means = _mean_outputs(questions, opened)
    found = []
    for question, sites in zip(questions, opened, strict=True):
        clean = distributions(question)
        groups = [sites] if scope.kind == "all" else [[site] for site in sites]
        found.append([_effect(question, scope, means, group, clean) for group in groups])
    effects = [np.concatenate(each) for each in zip(*found, strict=True)]
    if means and len(effects[0]) == 1:
        effects = [np.full(1, np.nan) for _ in effects]
    return effects, bool(means)


def _mean_outputs(
    questions: Sequence[Question], opened: Sequence[Sequence[OpenSite]]
) -> dict[str, HeadOutput]:
    """The mean output of each head over texts and counted rows."""
    sums: dict[str, Tensor] = {}
    counts: dict[str, Tensor] = {}
    for question, sites in zip(questions, opened, strict=True):
        for name, total, count in _summed_outputs(question, sites):
            sums[name] = sums[name] + total if name in sums else total
            counts[name] = counts[name] + count if name in counts else count
    return {name: (sums[name] / counts[name]).float() for name in sums}


def _summed_outputs(
    question: Question, opened: Sequence[OpenSite]
) -> Iterator[tuple[str, Tensor, Tensor]]:
    """For each site whose values can be read: the sum of its rows' outputs, and their number."""
    rows = {each.site.name: each.rows for each in opened}

    def keep(call: Call) -> tuple[str, Tensor | None]:
        mixed = mixed_values(call)
        own = rows[call.site.name]
        return call.site.name, None if mixed is None else mixed.double()[own].sum(dim=0)

    for name, total in fold_attention(question, keep, [each.site for each in opened]).held:
        if total is not None:
            yield name, total, rows[name].sum()


def _effect(
    question: Question, scope: Scope, means: Means, group: Sequence[OpenSite], clean: Tensor
) -> NDArray[np.float64]:
    constants = {
        each.site.name: (means[each.site.name], each.rows)
        for each in group
        if each.site.name in means
    }
    edits = [_remove(each) for each in group if each.site.name not in means]
    if scope.frozen:
        own = {each.site.name for each in group}
        others = [site for site in question.subject.sites if site.name not in own]
        edits += clean_edits(question, others) if others else []
    with torch.no_grad(), ablating(question.subject, constants, edits):
        found = distributions(question)
    return total_variation(found, clean).cpu().numpy()


def _remove(opened: OpenSite) -> Edit:
    def change(weights: Attention, _: Visible) -> Attention:
        return weights * ~opened.rows[:, None, :, None]

    return Edit("remove", change).at(kind=opened.site.kind, layer=opened.site.layer)
