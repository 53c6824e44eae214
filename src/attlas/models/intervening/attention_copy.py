"""A copy of a model whose query and key weights can be trained."""

from collections.abc import Sequence
from copy import deepcopy
from dataclasses import dataclass, replace

import torch
from torch import Tensor, nn

from attlas.errors import UnsupportedModelError
from attlas.models.asking.open_model import OpenModel
from attlas.models.asking.question import Question
from attlas.models.asking.scores import run_logits
from attlas.models.facts.evaluation_mode import evaluation_mode
from attlas.models.loading.offloading import check_changeable
from attlas.models.tap.opening import tap
from attlas.results import Site


@dataclass(frozen=True, eq=False)
class AttentionWeight:
    """A weight of the copy, its original value, and which of its numbers attention depends on."""

    weight: nn.Parameter
    own: Tensor
    trainable: Tensor

    def reset(self) -> None:
        """Restore the original value."""
        self.weight.data.copy_(self.own)

    def shake(self, size: float, random: torch.Generator) -> None:
        """Add noise of `size` times the weight's own spread to its trainable numbers."""
        noise = torch.randn(self.own.shape, generator=random).to(self.own)
        spread = self.own[self.trainable].float().std(correction=0)
        self.weight.data.add_(size * spread * noise * self.trainable)


@dataclass(frozen=True, eq=False)
class AttentionCopy:
    """A copy of a subject, and the query and key weights of some of its sites."""

    subject: OpenModel
    weights: tuple[AttentionWeight, ...]

    def about(self, question: Question) -> Question:
        """The same question about the copy."""
        return replace(question, subject=self.subject)

    def freeze_all_but_attention(self) -> list[nn.Parameter]:
        """Let only the query and key weights require gradients, and return them."""
        for weight in self.subject.model.parameters():
            weight.requires_grad_(False)
        for each in self.weights:
            each.weight.requires_grad_()
        return [each.weight for each in self.weights]

    def free_all(self) -> list[nn.Parameter]:
        """Let all weights require gradients, and return them."""
        weights = list(self.subject.model.parameters())
        for each in weights:
            each.requires_grad_()
        return weights

    def mask_gradients(self) -> None:
        """Zero the gradients of other weights in the same tensors as query or key weights."""
        for each in self.weights:
            if each.weight.grad is not None:
                each.weight.grad.mul_(each.trainable)


def copy_of(subject: OpenModel) -> OpenModel:
    """The same subject with a copy of its model, in evaluation mode, and precise enough to train.

    In half precision the squares of small gradients are zero, and the steps that divide by them
    have no end.
    """
    check_changeable(subject.model, "training a copy")
    with evaluation_mode(subject.model):
        model = deepcopy(subject.model).eval()
    is_half = subject.model.dtype in (torch.float16, torch.bfloat16)
    return subject.with_model(model.float() if is_half else model)


def attention_copy(question: Question, sites: Sequence[Site]) -> AttentionCopy:
    """Copy the question's model and find the weights that the attention of these sites depends on.

    They are found by gradient among the weights of the attention module. So it does not matter how
    a family names them, or whether queries, keys and values share one matrix.
    """
    subject = copy_of(question.subject)
    paths = dict(reversed([(path, site) for site, path in subject.places if site in set(sites)]))
    copied = replace(question, subject=subject)
    with torch.enable_grad(), tap(subject.model, wants=set(paths.values()).__contains__) as seen:
        for each in subject.model.parameters():
            each.requires_grad_()
        run_logits(copied)
    trainable = []
    for call in seen.calls:
        matrices = _matrices(subject.model.get_submodule(call.path))
        chance = torch.rand(call.weights.shape, generator=torch.Generator().manual_seed(0))
        total = (call.weights * chance.to(call.weights)).sum()
        found = torch.autograd.grad(total, matrices, retain_graph=True, allow_unused=True)
        trainable += [
            AttentionWeight(weight, weight.detach().clone(), gradient != 0)
            for weight, gradient in zip(matrices, found, strict=True)
            if gradient is not None and gradient.any()
        ]
    if not trainable:
        raise UnsupportedModelError(
            f"the attention of {subject.name} cannot be trained: it depends on no "
            "weight of its module"
        )
    return AttentionCopy(subject, tuple(trainable))


def _matrices(module: nn.Module) -> list[nn.Parameter]:
    """The weights of a module, without embedding tables."""
    return [
        weight
        for each in module.modules()
        if not isinstance(each, nn.Embedding)
        for weight in each.parameters(recurse=False)
    ]
