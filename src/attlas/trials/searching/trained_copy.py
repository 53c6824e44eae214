"""Copies of a model that are trained to attend differently; the layers below are not trained."""

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
    find_leeways,
    frozen_above,
    read_sites,
)
from attlas.trials.support.outputs import chooses_differently, total_variation
from attlas.trials.support.scope import Scope


@dataclass(frozen=True, eq=False)
class TrainingCase:
    """Texts of equal length as questions to the copy, and the model's own answers."""

    question: Question
    top: UpperBlocks
    leeways: Sequence[Leeway]
    base: Tensor  # `[batch, pick, choice]`

    def run(self, attention: Attentions | None = None) -> UpperPass:
        """Run the copy, with a graph if its weights need gradients."""
        return self.top.run({**frozen_above(self.top, self.leeways), **(attention or {})})

    def change(self, passed: UpperPass) -> Tensor:
        """How far the answer to each text is from the model's own answer."""
        return total_variation(answers_of(self.question, passed.logits)[0], self.base)

    def distance(self, passed: UpperPass) -> Tensor:
        """How far the attention on each text is from the model's own attention."""
        new = [each.shares_of(passed.attention[each.site]) for each in self.leeways]
        return divergence(self.leeways, new, [each.own for each in self.leeways])

    def agrees(self, passed: UpperPass) -> Tensor:
        """Whether the copy chooses the same as the model, for each text."""
        return ~chooses_differently(answers_of(self.question, passed.logits)[0], self.base)

    def uniform(self) -> Attentions:
        """Attention with all rows that may change spread evenly over the keys that may change."""
        even = [
            each.free / each.free.sum(dim=-1, keepdim=True).clamp_min(1) for each in self.leeways
        ]
        return {
            each.site: each.rebuilt(share[None])
            for each, share in zip(self.leeways, even, strict=True)
        }


def make_case(copy: AttentionCopy, question: Question, scope: Scope) -> TrainingCase:
    """Ask the copy about some texts; its weights must still be the model's."""
    copied = copy.about(question)
    top = find_upper_blocks(copied, read_sites(copied, scope))
    base = answers_of(copied, top.logits)[0]
    return TrainingCase(copied, top, find_leeways(scope.open_sites(copied), top.clean), base)


Loss = Callable[[TrainingCase], Tensor]  # one value for each text


def train(
    copy: AttentionCopy,
    weights: Sequence[Tensor],
    cases: Sequence[TrainingCase],
    loss: Loss,
    plan: "TrainingPace",
) -> None:
    """Train these weights by Adam, one batch of texts at a time.

    A text in which nothing can change has a loss of NaN, and is left out.
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
    """How long and how fast a copy is trained."""

    epochs: int
    rate: float


def labelled(case: TrainingCase, attention: Attentions | None = None) -> Tensor:
    """The cross-entropy of each text with its target."""
    logits = case.run(attention).logits
    return -score_each(case.question.targets, logits, "probability").clamp_min(1e-30).log()
