"""Run a model with rewritten attention: how far its answers move, and whether they change.

The ceiling is how far they move if the attention carries nothing of the text: the output of the
site is replaced by its mean over all texts and counted rows. If even that changes nothing, the site
is not used.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, fields

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor

from attlas.keeping import kept
from attlas.models.asking.memory import in_fitting_batches
from attlas.models.asking.question import Question
from attlas.models.asking.reading import fold_attention, read_attention
from attlas.models.asking.scores import run_logits
from attlas.models.branching.branch_memory import rows_at_once
from attlas.models.branching.branches import Branch, run_branches
from attlas.models.branching.variants import Numbers, Variants
from attlas.models.intervening.ablating import ablating, mixed_values
from attlas.models.tap.call import Call
from attlas.models.tap.edits import Edit
from attlas.results import Site
from attlas.shapes import Attention, HeadOutput, Visible
from attlas.trials.rewriting.rewritings import Draws, Rewriting
from attlas.trials.support.outputs import (
    Answer,
    chooses_differently,
    distributions,
    total_variation,
    with_whole_answers,
)
from attlas.trials.support.scope import OpenSite, Scope
from attlas.trials.support.trial import seed_for

Means = Mapping[str, HeadOutput]  # by site; a site whose values cannot be read has none
AT_ONCE = 2**22  # numbers of answers in float64; a vocabulary can be large


@dataclass(frozen=True, eq=False)
class AnswerChange(Answer):
    """A target whose score says how the answer changed: distance, whether it flipped, the choice.

    The first row of outputs is the model's own answer; the score is `[row, 3]`.
    """

    def score(self, logits: Tensor, of: str = "probability") -> Tensor:
        """For each row: its distance from the first, whether its choice differs, and its choice."""
        own = super().score(logits[:1])
        most = max(1, AT_ONCE // logits[0].numel())
        chunks = [super(AnswerChange, self).score(each) for each in logits.split(most)]
        found = [
            torch.stack(
                [
                    total_variation(each, own),
                    chooses_differently(each, own),
                    each[..., 0, :].argmax(dim=-1),
                ],
                -1,
            )
            for each in chunks
        ]
        return torch.cat(found)


@dataclass(frozen=True, eq=False)
class RewritingPlan:
    """How attention is rewritten, how many times, and from which seed."""

    name: str
    rewriting: Rewriting
    count: int
    seed: int
    gold: Mapping[int, int] | None = None  # the right choice for each text, if known

    def draws(self, question: Question, site: Site, numbers: Sequence[int]) -> Draws:
        """The random numbers of these variants at a site."""
        name = f"{self.name} {site.name}"
        seeds = [seed_for(self.seed, text, name) for text in question.order]
        return Draws(seeds, numbers, question.subject.device)


def with_change_targets(question: Question) -> Question:
    """The question with targets that say how the answer changed."""
    made = tuple(
        AnswerChange(**{field.name: getattr(target, field.name) for field in fields(target)})
        for target in with_whole_answers(question).targets
    )
    return question.asking(made)


def run_plan(
    question: Question, scope: Scope, opened: Sequence[OpenSite], plan: RewritingPlan
) -> list[NDArray[np.float64]]:
    """For each scope in turn, how the answers changed, `[variant, batch, 3]`."""

    def run() -> list[NDArray[np.float64]]:
        with frozen_attention(question, scope):
            if scope.kind == "all":
                return [_everywhere(question, opened, plan)]
            branches = [Branch(each.site, _variants(question, each, plan)) for each in opened]
            found = run_branches(with_change_targets(question), branches, "probability")
        return [each.scores.double().cpu().numpy() for each in found]

    return kept(f"{plan.name} {question.order}", run)


def _variants(question: Question, opened: OpenSite, plan: RewritingPlan) -> Variants:
    def change(site: Site, weights: Attention, visible: Visible, numbers: Numbers) -> Tensor:
        entries = opened.entries(visible)
        new = plan.rewriting(weights[None], entries, plan.draws(question, site, numbers))
        return new.expand(len(numbers), *weights.shape)

    return Variants(plan.name, plan.count, change)


@contextmanager
def frozen_attention(question: Question, scope: Scope) -> Iterator[None]:
    """If the scope is frozen, reset all attention within the block to the model's own."""
    if not scope.frozen:
        yield
        return
    edits = clean_edits(question, question.subject.sites)
    with question.subject.tap(edits, sites=()):
        yield


def clean_edits(question: Question, sites: Sequence[Site]) -> list[Edit]:
    """Edits that restore the own attention of these sites, also on copies of the batch."""
    names = {site.name for site in sites}
    calls = [call for call in read_attention(question) if call.site.name in names]

    def held(clean: Attention) -> Edit:
        return Edit("clean", lambda w, _: clean.repeat(len(w) // len(clean), 1, 1, 1))

    return [held(c.weights).at(kind=c.site.kind, layer=c.site.layer) for c in calls]


def _everywhere(
    question: Question, opened: Sequence[OpenSite], plan: RewritingPlan
) -> NDArray[np.float64]:
    """Rewrite all sites at once, each on the stream that the others have changed."""
    most = rows_at_once(question)
    results: list[Tensor] = []

    def run(numbers: Sequence[int]) -> Tensor:
        return _rewritten_everywhere(question, opened, plan, numbers)

    for start in range(0, plan.count, most):
        numbers = range(start, min(start + most, plan.count))
        too_large = "one variant of the attention does not fit"
        results += in_fitting_batches(numbers, run, too_large, "variants")
    return torch.cat(results).double().cpu().numpy()


def _rewritten_everywhere(
    question: Question, opened: Sequence[OpenSite], plan: RewritingPlan, numbers: Sequence[int]
) -> Tensor:
    """How the answers changed, `[variant, batch, 3]`; the first copy of the batch is not edited."""
    count = len(question)
    copies = question.rows(list(range(count)) * (1 + len(numbers)))
    edits = [_edit(question, each, plan, numbers) for each in opened]
    with torch.no_grad(), question.subject.tap(edits, sites=()):
        logits = run_logits(copies)
    targets = with_change_targets(question).targets
    columns = [
        target.score(logits[row::count], "probability") for row, target in enumerate(targets)
    ]
    return torch.stack(columns, dim=1)[1:]


def _edit(
    question: Question, opened: OpenSite, plan: RewritingPlan, numbers: Sequence[int]
) -> Edit:
    count, site = len(question), opened.site

    def change(weights: Attention, visible: Visible) -> Attention:
        copies = weights.unflatten(0, (-1, count))
        draws = plan.draws(question, site, numbers)
        new = plan.rewriting(copies[1:], opened.entries(visible[:count]), draws)
        return torch.cat([copies[:1], new]).flatten(0, 1)

    return Edit(plan.name, change).at(kind=site.kind, layer=site.layer)


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
    """For each site whose output can be replaced: the sum of its rows, and their number."""
    rows = {each.site.name: each.rows for each in opened}

    def keep(call: Call) -> tuple[str, Tensor | None]:
        mixed = mixed_values(question.subject, call)
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
