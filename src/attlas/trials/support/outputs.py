"""The whole answer of a model where a target is read: its distributions and its decision."""

from dataclasses import dataclass, fields

import torch
from torch import Tensor

from attlas.errors import UsageError
from attlas.mathematics import divergences
from attlas.models.asking.question import Question
from attlas.models.asking.scores import run_logits
from attlas.models.encoding.target import Target
from attlas.models.facts.evaluation_mode import evaluation_mode


@dataclass(frozen=True)
class Answer(Target):
    """A target whose score is the whole distribution, not the probability of one choice."""

    def score(self, logits: Tensor, of: str = "probability") -> Tensor:
        """The distribution of each pick, `[…, pick, choice]`, in float64.

        In a multi-label model each label is a choice of its own: it holds or it does not.
        """
        places, choices = zip(*self.picks, strict=True)
        if self.link == "softmax":
            return logits[..., list(places), :].double().softmax(dim=-1)
        holds = logits[..., list(places), list(choices)].double()
        return torch.stack([holds, -holds], dim=-1).sigmoid()


def with_whole_answers(question: Question) -> Question:
    """The question with Answers as its targets.

    `run_branches` then returns distributions, `[variant, batch, pick, choice]`.
    """
    return question.asking([_answer(target) for target in question.targets])


def _answer(target: Target) -> Answer:
    if target.link == "identity":
        raise UsageError(
            f"{target.name!r} is a value, and a trial needs a distribution over choices"
        )
    if target.either:
        raise UsageError(f"a trial takes one target, and {target.name!r} are several")
    if target.contrast:
        raise UsageError(
            f"a trial takes no contrast, and {target.name!r} has one, {target.contrast_name!r}"
        )
    return Answer(**{field.name: getattr(target, field.name) for field in fields(target)})


def distributions(question: Question) -> Tensor:
    """The answer to each row, `[batch, pick, choice]`; taps may be open."""
    with torch.no_grad(), evaluation_mode(question.subject.model):
        rows = zip(with_whole_answers(question).targets, run_logits(question), strict=True)
        return torch.stack([target.score(logits, "probability") for target, logits in rows])


def total_variation(first: Tensor, second: Tensor) -> Tensor:
    """The total variation distance of two answers `[…, pick, choice]`, a mean over the picks."""
    return divergences.total_variation(first, second).mean(dim=-1)


def jensen_shannon(first: Tensor, second: Tensor) -> Tensor:
    """Like `total_variation`, but the Jensen–Shannon divergence."""
    return divergences.jensen_shannon(first, second).mean(dim=-1)


def chooses_differently(first: Tensor, second: Tensor) -> Tensor:
    """Whether two answers differ in their most probable choice, at any pick."""
    return (first.argmax(dim=-1) != second.argmax(dim=-1)).any(dim=-1)
