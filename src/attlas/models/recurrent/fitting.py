"""Fitting: a recurrent model learns the labels of texts; the best epoch is kept."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, dataclass, field
from math import inf
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from attlas.errors import UsageError, check_whole
from attlas.mathematics.ranking import roc_auc
from attlas.models.recurrent.batches import Batch, TextTable
from attlas.models.recurrent.checkpoints import Checkpoint, read_checkpoint, write_checkpoint
from attlas.progress import say

ASKED_ROWS = 256
Loss = Callable[[nn.Module, Batch], Tensor]
Judged = Callable[[Any, TextTable], dict[str, float]]
Told = Callable[[str, int, int], None]  # what is done, how many batches of all


@dataclass(frozen=True)
class FitPlan:
    """How a model is fitted: epochs, batch size, Adam's rate and decay, when it stops early."""

    epochs: int = 8
    rows: int = 32
    rate: float = 1e-3
    decay: float = 1e-5
    patience: int | None = None  # epochs without a better one until it stops
    slower: float = 1.0  # what the rate is multiplied by after an epoch that was no better
    by: str = "auc"  # the figure that tells which epoch is best
    seed: int = 0

    def __post_init__(self) -> None:
        if self.epochs < 1 or self.rows < 1 or not 0 < self.rate < inf:
            raise UsageError(
                "training takes 1 or more epochs, 1 or more texts at once and a rate above 0, not "
                f"{self.epochs} epochs, {self.rows} texts and a rate of {self.rate}"
            )
        check_whole("epochs", self.epochs)
        check_whole("texts at once", self.rows)
        check_whole("seed", self.seed, 0, 2**32 - 1)
        if self.patience is not None:
            check_whole("patience", self.patience)


@dataclass(frozen=True)
class Fitted:
    """What came of it: the epoch that was kept, the figures of every epoch, what to know of it."""

    best: int
    epochs: list[dict[str, float]] = field(default_factory=list)
    notes: tuple[str, ...] = ()


def label_loss(positive_weight: float | None = None) -> Loss:
    """The cross entropy of the labels, summed over the batch.

    With two labels, texts of the second count `positive_weight` times.
    """

    def loss(model: nn.Module, batch: Batch) -> Tensor:
        logits = model(**batch.arguments).logits
        weight = None
        if positive_weight is not None:
            weight = logits.new_tensor([1.0, positive_weight])
        return nn.functional.cross_entropy(logits, batch.labels, weight, reduction="sum")

    return loss


def balanced_weight(labels: Sequence[int]) -> float | None:
    """How often the second of two labels must count so that both count the same."""
    positive = sum(label == 1 for label in labels)
    two = max(labels, default=0) < 2 and 0 < positive < len(labels)
    return len(labels) / positive - 1 if two else None


def fit(
    model: Any,
    train: TextTable,
    dev: TextTable,
    plan: FitPlan,
    *,
    loss: Loss | None = None,
    judged: Judged | None = None,
    folder: str | Path | None = None,
    about: Mapping[str, Any] | None = None,
    tell: Told = lambda *_: None,
) -> Fitted:
    """Train in place; the weights of the epoch that is best on `dev`, by its AUC, are kept.

    The first epoch is never kept if there is another. With a `folder`, every epoch is written
    there, and a training that was stopped goes on from the last: the weights come out the same.
    `about` is written there too, and must be the same then. `judged` gives the figures of a model
    on a table, the one that `plan.by` names among them.
    """
    loss = loss or label_loss(balanced_weight(train.labels.tolist()))
    optimizer = make_optimizer(model, plan)
    known = {**asdict(plan), **(about or {})}
    state = read_checkpoint(folder, model, optimizer, known) if folder else Checkpoint()
    if folder and state.epoch:
        say_resumed(folder, state.epoch, plan)
    total = plan.epochs * len(train.drawn(plan.rows, (plan.seed, 0)))
    for epoch in range(state.epoch, plan.epochs):
        if state.is_over(plan.patience):
            break
        for group in optimizer.param_groups:
            group["lr"] = plan.rate * plan.slower ** state.setbacks(plan.by)
        train_epoch(model, optimizer, train, plan, epoch, loss, tell, total)
        figures = (judged or evaluate)(model, dev)
        state = state.after(epoch, figures, plan.by, _weights(model))
        if folder:
            write_checkpoint(folder, model, optimizer, known, state)
    model.load_state_dict(state.best_weights)
    model.eval()
    return Fitted(state.best, state.figures, state.notes)


def say_resumed(folder: str | Path, done: int, plan: FitPlan) -> None:
    """Say that a training goes on: whoever starts it again learns that its work was not lost."""
    say(f"attlas: the training in {folder} goes on after epoch {done} of {plan.epochs}")


def train_epoch(
    model: Any,
    optimizer: torch.optim.Optimizer,
    train: TextTable,
    plan: FitPlan,
    epoch: int,
    loss: Loss,
    tell: Told,
    total: int,
) -> None:
    """One pass over all texts; everything random follows from the seed and the epoch."""
    chosen = train.drawn(plan.rows, (plan.seed, epoch))
    model.train()
    with _random(plan.seed, epoch), torch.enable_grad():
        for number, rows in enumerate(chosen):
            tell(f"epoch {epoch + 1} of {plan.epochs}", epoch * len(chosen) + number, total)
            optimizer.zero_grad()
            loss(model, train.batch(rows)).backward()
            optimizer.step()
    model.eval()


def predict_table(model: Any, table: TextTable) -> NDArray[np.float64]:
    """The probability of each label, `[text, label]`, in the order of the texts."""
    found = np.zeros((len(table), model.config.num_labels))
    model.eval()
    with torch.no_grad():
        for batch in table.in_order(ASKED_ROWS):
            logits = model(**batch.arguments).logits.double()
            found[batch.numbers.cpu().numpy()] = logits.softmax(dim=-1).cpu().numpy()
    return found


def evaluate(model: Any, table: TextTable) -> dict[str, float]:
    """The accuracy, and the area under the ROC curve: of the second label, or the mean of all.

    Texts of one label have no such area.
    """
    sure, labels = predict_table(model, table), table.labels.cpu().numpy()
    each = [1] if sure.shape[1] == 2 else range(sure.shape[1])
    areas = [roc_auc(sure[:, label], labels == label) for label in each]
    known = [area for area in areas if not np.isnan(area)]
    figures = {"accuracy": float((sure.argmax(axis=1) == labels).mean())}
    return figures | ({"auc": float(np.mean(known))} if known else {})


def make_optimizer(model: Any, plan: FitPlan) -> torch.optim.Optimizer:
    """Adam with amsgrad; weights of the attention do not decay."""
    named = list(model.named_parameters())
    free = [weight for name, weight in named if ".attention." in name]
    others = [weight for name, weight in named if ".attention." not in name]
    groups = [{"params": others, "weight_decay": plan.decay}]
    groups += [{"params": free, "weight_decay": 0.0}] if free else []
    return torch.optim.Adam(groups, lr=plan.rate, amsgrad=True)


def _weights(model: nn.Module) -> dict[str, Tensor]:
    return {name: value.detach().clone() for name, value in model.state_dict().items()}


@contextmanager
def _random(seed: int, epoch: int) -> Iterator[None]:
    """Within the block, everything random in torch follows the seed; then all is as before."""
    with torch.random.fork_rng(devices=range(torch.cuda.device_count())):
        torch.manual_seed(int(np.random.SeedSequence((seed, epoch)).generate_state(1)[0]))
        yield
