"""Copies of a model trained to attend otherwise, or anew; what is below stands still."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from attlas.models.asking.question import Question
from attlas.models.branching.upper_blocks import (
    Attentions,
    UpperBlocks,
    UpperPass,
    find_upper_blocks,
)
from attlas.models.encoding.target import score_each
from attlas.models.intervening.attention_copy import AttentionCopy
from attlas.trials.searching.leeway import (
    Leeway,
    answers_of,
    divergence,
    frozen_above,
    leeways,
    read_sites,
)
from attlas.trials.support.outputs import is_other, total_variation
from attlas.trials.support.scope import Scope


@dataclass(frozen=True, eq=False)
class TrainingCase:
    """Texts of equal length, as the copy is asked about them, and the model's own answers."""

    question: Question
    top: UpperBlocks
    given: Sequence[Leeway]
    base: Tensor  # `[batch, pick, choice]`

    def run(self, attention: Attentions | None = None) -> UpperPass:
        """A pass of the copy, in a graph where its weights ask for gradients."""
        return self.top.run({**frozen_above(self.top, self.given), **(attention or {})})

    def change(self, passed: UpperPass) -> Tensor:
        """How far the answer to each text is from the model's own."""
        return total_variation(answers_of(self.question, passed.logits)[0], self.base)

    def distance(self, passed: UpperPass) -> Tensor:
        """How far the attention on each text is from the model's own."""
        new = [each.shares_of(passed.attention[each.site]) for each in self.given]
        return divergence(self.given, new, [each.own for each in self.given])

    def agrees(self, passed: UpperPass) -> Tensor:
        """Whether the answer to each text is the model's own."""
        return ~is_other(answers_of(self.question, passed.logits)[0], self.base)

    def uniform(self) -> Attentions:
        """All rows that may change spread evenly over the keys that may."""
        even = [each.free / each.free.sum(dim=-1, keepdim=True).clamp_min(1) for each in self.given]
        return {
            each.site: each.rebuilt(share[None])
            for each, share in zip(self.given, even, strict=True)
        }


def make_case(copy: AttentionCopy, question: Question, scope: Scope) -> TrainingCase:
    """Ask the copy, which must be as the model is, about some texts."""
    copied = copy.about(question)
    top = find_upper_blocks(copied, read_sites(copied, scope))
    base = answers_of(copied, top.logits)[0]
    return TrainingCase(copied, top, leeways(scope.opened(copied), top.clean), base)


Loss = Callable[[TrainingCase], Tensor]  # of each text


def train(
    copy: AttentionCopy,
    weights: Sequence[Tensor],
    cases: Sequence[TrainingCase],
    loss: Loss,
    plan: "TrainingPace",
) -> None:
    """Adam on these weights, a batch of texts at a time; texts all count the same.

    A text whose loss is not a number, having nothing that could change, is left out.
    """
    optimiser = torch.optim.Adam(list(weights), lr=plan.rate)
    attention_alone = len(weights) == len(copy.weights)
    for _ in range(plan.epochs):
        for case in cases:
            lost = loss(case)
            known = lost[~lost.isnan()]
            if not len(known):
                continue
            optimiser.zero_grad()
            known.mean().backward()
            if attention_alone:
                copy.mask_gradients()
            optimiser.step()


@dataclass(frozen=True)
class TrainingPace:
    """How long, and how fast, a copy is trained."""

    epochs: int
    rate: float


def labelled(case: TrainingCase, attention: Attentions | None = None) -> Tensor:
    """The cross-entropy with the targets of the question."""
    logits = case.run(attention).logits
    return -score_each(case.question.targets, logits, "probability").clamp_min(1e-30).log()
