"""A copy of a model whose attention can be trained: its query and key weights alone."""

from collections.abc import Sequence
from copy import copy, deepcopy
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from attlas.errors import UnsupportedModelError
from attlas.models.asking.open_model import OpenModel
from attlas.models.asking.question import Question
from attlas.models.asking.scores import run_logits
from attlas.models.facts.evaluation_mode import evaluation_mode
from attlas.models.tap.opening import tap
from attlas.results import Site


@dataclass(frozen=True, eq=False)
class AttentionWeight:
    """A weight of the copy, what it was, and which of its numbers the attention is made with."""

    weight: nn.Parameter
    own: Tensor
    trainable: Tensor

    def reset(self) -> None:
        """Give it back what it was."""
        self.weight.data.copy_(self.own)

    def shake(self, size: float, random: torch.Generator) -> None:
        """Add noise of so many times its own spread, to the attention's part alone."""
        noise = torch.randn(self.own.shape, generator=random).to(self.own)
        spread = self.own[self.trainable].float().std(correction=0)
        self.weight.data.add_(size * spread * noise * self.trainable)


@dataclass(frozen=True, eq=False)
class AttentionCopy:
    """A copy of a subject, with the query and key weights of some of its sites."""

    subject: OpenModel
    weights: tuple[AttentionWeight, ...]

    def about(self, question: Question) -> Question:
        """The same question put to the copy."""
        return replace(question, subject=self.subject)

    def freeze_all_but_attention(self) -> list[nn.Parameter]:
        """Let query and key weights alone ask for gradients, and those of other parts get none."""
        for weight in self.subject.model.parameters():
            weight.requires_grad_(False)
        for each in self.weights:
            each.weight.requires_grad_()
        return [each.weight for each in self.weights]

    def free_all(self) -> list[nn.Parameter]:
        """Let all weights ask for gradients."""
        weights = list(self.subject.model.parameters())
        for each in weights:
            each.requires_grad_()
        return weights

    def mask_gradients(self) -> None:
        """Drop the gradients of weights that share a tensor with query or key weights."""
        for each in self.weights:
            if each.weight.grad is not None:
                each.weight.grad.mul_(each.trainable)


def copy_of(subject: OpenModel) -> OpenModel:
    """The same subject with a model of its own, in evaluation mode."""
    new = copy(subject)
    with evaluation_mode(subject.model):
        new.model = deepcopy(subject.model).eval()
    new.__dict__.pop("ways_in", None)
    return new


def attention_copy(question: Question, sites: Sequence[Site]) -> AttentionCopy:
    """A copy of the question's model, and which of its weights make the attention of these sites.

    They are those of the attention's own module that its weights depend on, found by gradient: so
    it does not matter what a family calls them, or whether queries, keys and values are in one.
    """
    subject = copy_of(question.subject)
    paths = dict(reversed([(path, site) for site, path in subject.places if site in set(sites)]))
    copied = replace(question, subject=subject)
    with torch.enable_grad(), tap(subject.model, wants=set(paths.values()).__contains__) as seen:
        for each in subject.model.parameters():
            each.requires_grad_()
        run_logits(copied)
    loose = []
    for call in seen.calls:
        weights = _matrices(subject.model.get_submodule(call.path))
        chance = torch.rand(call.weights.shape, generator=torch.Generator().manual_seed(0))
        total = (call.weights * chance.to(call.weights)).sum()
        found = torch.autograd.grad(total, weights, retain_graph=True, allow_unused=True)
        loose += [
            AttentionWeight(weight, weight.detach().clone(), gradient != 0)
            for weight, gradient in zip(weights, found, strict=True)
            if gradient is not None and gradient.any()
        ]
    if not loose:
        raise UnsupportedModelError(
            f"the attention of {subject.name} cannot be trained: it moves with no weight of its own"
        )
    return AttentionCopy(subject, tuple(loose))


def _matrices(module: nn.Module) -> list[nn.Parameter]:
    """The weights of a module but for tables, which are looked up and not multiplied by."""
    return [
        weight
        for part in module.modules()
        if not isinstance(part, nn.Embedding)
        for weight in part.parameters(recurse=False)
    ]
