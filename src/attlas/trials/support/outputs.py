"""The whole answer of a model at the places a target is read from: distributions, and decisions."""

from dataclasses import dataclass, fields, replace

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
    """A target seen whole: its score is the distribution that it is one number of."""

    def score(self, logits: Tensor, of: str = "probability") -> Tensor:
        """What each pick is chosen by, `[…, pick, choice]`, in float64.

        Of several labels that may hold at once, each is a choice of its own: it holds, or not.
        """
        places, choices = zip(*self.picks, strict=True)
        if self.link == "softmax":
            return logits[..., list(places), :].double().softmax(dim=-1)
        holds = logits[..., list(places), list(choices)].double()
        return torch.stack([holds, -holds], dim=-1).sigmoid()


def answering(question: Question) -> Question:
    """The question with its targets seen whole: `branches` then gives distributions.

    They are `[variant, batch, pick, choice]`.
    """
    return replace(question, targets=tuple(_answer(target) for target in question.targets))


def _answer(target: Target) -> Answer:
    if target.link == "identity":
        raise UsageError(f"{target.name!r} is a value: it has no distribution that could change")
    if target.contrast:
        raise UsageError(
            f"{target.name!r} is contrasted with {target.contrast_name!r}: ask about it alone"
        )
    return Answer(**{field.name: getattr(target, field.name) for field in fields(target)})


def distributions(question: Question) -> Tensor:
    """The answer to each row, `[batch, pick, choice]`; the model may be tapped."""
    with torch.no_grad(), evaluation_mode(question.subject.model):
        rows = zip(answering(question).targets, run_logits(question), strict=True)
        return torch.stack([target.score(logits, "probability") for target, logits in rows])


def total_variation(first: Tensor, second: Tensor) -> Tensor:
    """How far two answers, `[…, pick, choice]`, are apart: the mean over the picks."""
    return divergences.total_variation(first, second).mean(dim=-1)


def jensen_shannon(first: Tensor, second: Tensor) -> Tensor:
    """As `total_variation`, by the divergence of Jensen and Shannon."""
    return divergences.jensen_shannon(first, second).mean(dim=-1)


def is_other(first: Tensor, second: Tensor) -> Tensor:
    """Whether two answers choose differently anywhere."""
    return (first.argmax(dim=-1) != second.argmax(dim=-1)).any(dim=-1)
