"""Models that learn from another model: by its attention, or against it.

Wiegreffe and Pinter train a model without context on the weights of a recurrent one, and a second
recurrent model that answers as the first does and attends as differently as it can.
"""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from attlas.mathematics.divergences import jensen_shannon, kullback_leibler, total_variation
from attlas.mathematics.ranking import roc_auc
from attlas.models.recurrent.batches import Batch, TextTable
from attlas.models.recurrent.fitting import FitPlan, Loss, make_optimizer, train_epoch
from attlas.models.recurrent.learning import build_classifier
from attlas.studies.recurrent.readings import readings
from attlas.studies.recurrent.training import TrainedModel

ELSEWHERE = 1000  # added to the seed: an adversary does not start where its base did
LEAST = 1e-10  # of a base weight in a divergence: one that underflows would make it infinite


@dataclass(frozen=True, eq=False)
class Answers:
    """What a model says on every text of a table: its weights and its probabilities."""

    weights: Tensor  # [text, token], zero where there is nothing to see
    sure: Tensor  # [text, choice]


def answers_of(model: Any, table: TextTable) -> Answers:
    """The weights and probabilities of a model on all texts of a table, in their order."""
    weights = torch.zeros(table.ids.shape, device=table.ids.device)
    sure = weights.new_zeros((len(table), model.config.num_labels))
    for reading in readings(model, table):
        rows = reading.batch.numbers
        weights[rows, : reading.weights.shape[1]] = reading.weights
        sure[rows] = reading.clean
    return Answers(weights, sure)


def even_weights(weights: Tensor) -> Tensor:
    """The same weight for every token that has any."""
    seen = (weights > 0).float()
    return seen / seen.sum(dim=-1, keepdim=True).clamp_min(1)


def fresh_model(trained: TrainedModel, seed: int, **parts: Any) -> Any:
    """An untrained model with the words of a trained one, and other parts if given.

    Its word vectors are those that the trained one began with.
    """
    config = trained.model.config
    labels = [config.id2label[number] for number in range(config.num_labels)]
    vectors = trained.start.cpu().numpy()
    usual = {"encoder": config.encoder, "attention": config.attention, "reads": config.reads}
    sizes = {} if "encoder" in parts else {"hidden_size": config.hidden_size}
    model = build_classifier(
        trained.tokenizer, labels, vectors, seed=seed, **{**usual, **sizes, **parts}
    )
    return model.to(trained.test.ids.device)


def guided_figures(
    trained: TrainedModel,
    guides: tuple[Tensor, Tensor],
    plan: FitPlan,
    hidden_size: int | None = None,
) -> dict[str, float]:
    """Train a model without context on fixed weights, of training and test texts, and test it."""
    sizes = {"hidden_size": hidden_size} if hidden_size else {}
    model = fresh_model(trained, plan.seed, encoder="average", attention="uniform", **sizes)
    train, test = guides

    def loss(model: nn.Module, batch: Batch) -> Tensor:
        logits = _guided(model, batch, train)
        return nn.functional.cross_entropy(logits, batch.labels, reduction="sum")

    for _ in train_by(model, trained.train, plan, loss):
        pass
    with torch.no_grad():
        sure = trained.test.labels.new_zeros((len(trained.test), model.config.num_labels)).double()
        for batch in trained.test.in_order(256):
            sure[batch.numbers] = _guided(model, batch, test).double().softmax(dim=-1)
    return quality(sure.cpu().numpy(), trained.test.labels.cpu().numpy())


def _guided(model: Any, batch: Batch, guides: Tensor) -> Tensor:
    weights = guides[batch.numbers, : batch.input_ids.shape[1]]
    found: Tensor = model(**batch.arguments, attention_weights=weights).logits
    return found


def adversary_loss(base: Answers, weight: float) -> Loss:
    """The change of the answer minus λ times the divergence of the attention from the base."""

    def loss(model: Any, batch: Batch) -> Tensor:
        states = model.encode(**batch.arguments)
        weights = model.weigh(states)
        sure = model.read(states, weights).softmax(dim=-1)
        change = total_variation(sure, base.sure[batch.numbers])
        own = base.weights[batch.numbers, : weights.shape[1]].clamp_min(LEAST)
        return (change - weight * kullback_leibler(weights, own)).sum()

    return loss


def train_adversary(trained: TrainedModel, base: Answers, weight: float, plan: FitPlan) -> Any:
    """A new model of the same kind that answers as the base does and attends differently."""
    model = fresh_model(trained, plan.seed + ELSEWHERE)
    best, kept = float("inf"), None
    for total in train_by(model, trained.train, plan, adversary_loss(base, weight)):
        if total < best:
            best, kept = total, {name: each.clone() for name, each in model.state_dict().items()}
    if kept is not None:
        model.load_state_dict(kept)
    return model.eval()


def train_by(model: Any, table: TextTable, plan: FitPlan, loss: Loss) -> Iterator[float]:
    """Train epoch by epoch, and give the loss of each; `patience` without a lower one ends it."""
    optimizer = make_optimizer(model, plan)
    batches = len(table.drawn(plan.rows, (plan.seed, 0)))
    losses: list[float] = []
    for epoch in range(plan.epochs):
        total = torch.zeros((), device=table.ids.device)

        def counted(model: nn.Module, batch: Batch, total: Tensor = total) -> Tensor:
            found = loss(model, batch)
            total += found.detach()
            return found

        train_epoch(
            model, optimizer, table, plan, epoch, counted, lambda *_: None, plan.epochs * batches
        )
        losses.append(float(total))
        yield losses[-1]
        if plan.patience and int(np.argmin(losses)) < len(losses) - plan.patience:
            return


def distances(one: Answers, other: Answers) -> tuple[NDArray[np.float64], NDArray[np.float64]]:
    """For each text, the change of the answer and the divergence of the attention."""
    change = total_variation(one.sure.double(), other.sure.double())
    apart = jensen_shannon(one.weights.double(), other.weights.double())
    return change.cpu().numpy(), apart.cpu().numpy()


def quality(sure: NDArray[np.float64], labels: NDArray[np.int64]) -> dict[str, float]:
    """Accuracy, and for two classes the AUC and F1 of the second."""
    predicted = sure.argmax(axis=1)
    found = {"accuracy": float((predicted == labels).mean())}
    if sure.shape[1] == 2:
        right = float(((predicted == 1) & (labels == 1)).sum())
        found["auc"] = float(roc_auc(sure[:, 1], labels == 1))
        found["f1"] = 2 * right / max(1.0, float((predicted == 1).sum() + (labels == 1).sum()))
    return found
