"""A small network that replaces a model's keys by others, and its training."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from attlas.errors import UnsupportedModelError
from attlas.models.asking.question import Question
from attlas.models.encoding.target import Target, score_each
from attlas.models.facts.evaluation_mode import evaluation_mode
from attlas.models.intervening.keys import WithKeys, run_with_keys
from attlas.results import Site
from attlas.trials.support.scope import OpenSite, Scope
from attlas.trials.support.trial import seed_for

HIDDEN = 256
Keys = Mapping[Site, Tensor]  # each `[batch, key, feature]`


@dataclass(frozen=True, eq=False)
class KeyBatch:
    """Texts of equal length, what may change in their attention, and the model's own keys."""

    question: Question
    open_sites: Sequence[OpenSite]
    clean: WithKeys

    @property
    def sites(self) -> tuple[Site, ...]:
        """The sites whose keys are replaced."""
        return tuple(each.site for each in self.open_sites)


def make_key_batch(question: Question, scope: Scope) -> KeyBatch:
    """Read the model's own keys in one forward pass."""
    open_sites = scope.open_sites(question)
    sites = [each.site for each in open_sites]
    with torch.no_grad(), evaluation_mode(question.subject.model):
        clean = run_with_keys(question, sites)
    widths = {keys.shape[-1] for keys in clean.keys.values()}
    if len(widths) > 1:
        raise UnsupportedModelError(
            f"the keys of {question.subject.name} have {sorted(widths)} features in different "
            "layers, and one network cannot make them all: name a layer in the scope"
        )
    return KeyBatch(question, open_sites, clean)


class KeyAdversary:
    """Two layers with a ReLU between them over the features of a key, the same at every site.

    A key moves by at most `reach` times its own length.
    """

    def __init__(self, batches: Sequence[KeyBatch], reach: float, seed: int) -> None:
        keys = [each for batch in batches for each in batch.clean.keys.values()]
        self.size = torch.cat([each.flatten(0, 1) for each in keys]).float().norm(dim=-1).mean()
        self.reach = reach
        random = torch.Generator().manual_seed(seed_for(seed, 0, "adversarial_keys"))
        width, device = keys[0].shape[-1], keys[0].device
        shapes = ((HIDDEN, width), (HIDDEN,), (width, HIDDEN), (width,))
        inputs = (width, width, HIDDEN, HIDDEN)
        self.weights = [
            ((2 * torch.rand(shape, generator=random) - 1) / count**0.5).to(device)
            for shape, count in zip(shapes, inputs, strict=True)
        ]

    def keys(self, batch: KeyBatch) -> dict[Site, Tensor]:
        """Other keys for the texts of a batch; those of special tokens stay the same."""
        return {
            each.site: torch.where(each.keys[..., None], self._moved(own), own.float())
            for each in batch.open_sites
            for own in [batch.clean.keys[each.site]]
        }

    def _moved(self, own: Tensor) -> Tensor:
        first, bias, second, last = self.weights
        plain = own.float() / self.size
        made = ((plain @ first.T + bias).relu() @ second.T + last) * self.size
        step = made - own
        length = step.norm(dim=-1, keepdim=True)
        most = self.reach * own.float().norm(dim=-1, keepdim=True)
        bounded: Tensor = own + step * (most / length.clamp_min(1e-12)).clamp_max(1)
        return bounded

    def train(
        self, batches: Sequence[KeyBatch], targets: Sequence[Sequence[Target]], plan: "KeyTraining"
    ) -> None:
        """Make the keys as different as possible while the model still predicts its targets."""
        optimiser = torch.optim.Adam(self.weights, lr=plan.rate)
        with evaluation_mode(batches[0].question.subject.model):
            for each in self.weights:
                each.requires_grad_()
            for _ in range(plan.epochs):
                for batch, own in zip(batches, targets, strict=True):
                    keys = self.keys(batch)
                    lost = loss_of(own, run_with(batch, keys).logits)
                    far = key_distance(batch, keys)
                    optimiser.zero_grad()
                    (plan.alpha * lost - (1 - plan.alpha) * far).nansum().backward()
                    optimiser.step()
            for each in self.weights:
                each.requires_grad_(False)


@dataclass(frozen=True)
class KeyTraining:
    """How the network is trained: α · cross-entropy − (1 − α) · distance, by Adam."""

    alpha: float
    epochs: int
    rate: float


def run_with(batch: KeyBatch, keys: Keys) -> WithKeys:
    """Run the model with other keys."""
    return run_with_keys(batch.question, batch.sites, lambda site, _: keys[site])


def loss_of(targets: Sequence[Target], logits: Tensor) -> Tensor:
    """The cross-entropy of each text: minus the log-probability of its target."""
    return -score_each(tuple(targets), logits, "probability").clamp_min(1e-30).log()


def key_distance(batch: KeyBatch, keys: Keys) -> Tensor:
    """How far the content keys have moved, in their own length: a mean for each text."""
    far = [
        torch.where(
            each.keys,
            (keys[each.site] - batch.clean.keys[each.site]).norm(dim=-1)
            / batch.clean.keys[each.site].float().norm(dim=-1).clamp_min(1e-12),
            0,
        ).sum(dim=1)
        for each in batch.open_sites
    ]
    count = torch.stack([each.keys.sum(dim=1) for each in batch.open_sites]).sum(dim=0)
    return torch.stack(far).sum(dim=0) / torch.where(count > 0, count, torch.nan)
