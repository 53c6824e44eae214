"""Training for the studies: a recurrent model for a task, and models that learn from another.

Wiegreffe and Pinter train a model without context on the weights of a recurrent one, and a second
recurrent model that answers as the first does and attends as differently as it can.
"""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray
from torch import Tensor, nn

from attlas.errors import UsageError
from attlas.mathematics.divergences import kullback_leibler, total_variation
from attlas.models.recurrent.batches import Batch, TextTable
from attlas.models.recurrent.fitting import (
    FitPlan,
    Loss,
    Told,
    evaluate,
    fit,
    make_optimizer,
    train_epoch,
)
from attlas.models.recurrent.learning import build_classifier, labelled_table
from attlas.models.recurrent.words import build_vocabulary, random_vectors, read_vectors
from attlas.studies.recurrent.readings import Answers, quality
from attlas.studies.recurrent.tasks import RecurrentTask

ELSEWHERE = 1000  # added to the seed: an adversary does not start where its base did
LEAST = 1e-10  # of a base weight in a divergence: one that underflows would make it infinite

VECTOR_SIZE = 256
FREQUENT = 50  # words: nearly all of them articles, pronouns, signs and the like


@dataclass(frozen=True)
class ModelRecipe:
    """How a model is made: its parts, its word vectors, and how it is fitted."""

    parts: Mapping[str, Any] = field(default_factory=dict)  # of the classifier
    vectors: str | None = None  # a folder or a wheel; random vectors if None
    scale: float = 1.0  # by which the vectors are multiplied
    evens_vectors: bool = False  # gives all of them the same length, their mean
    trains_vectors: bool = True
    plan: FitPlan = FitPlan()  # noqa: RUF009


@dataclass(frozen=True, eq=False)
class TrainedModel:
    """A model with the texts it was trained on and is tested on, and how well it does."""

    model: Any
    tokenizer: Any
    train: TextTable
    test: TextTable
    figures: Mapping[str, float]
    start: torch.Tensor  # the word vectors before the training

    @property
    def pad(self) -> int:
        """The id of padding."""
        return self.test.pad


def train_model(
    task: RecurrentTask,
    recipe: ModelRecipe,
    device: str | None = None,
    *,
    loss: Loss | None = None,
    tell: Told = lambda *_: None,
) -> TrainedModel:
    """Train a model on a task; the epoch with the best AUC on its dev texts is kept."""
    tokenizer, vectors = _words(task, recipe.vectors, recipe.plan.seed)
    model = build_classifier(
        tokenizer,
        task.labels,
        shaped(vectors, recipe),
        seed=recipe.plan.seed,
        reads=task.reads,
        **recipe.parts,
    ).to(chosen_device(device))
    model.vectors.weight.requires_grad_(recipe.trains_vectors)
    start = model.vectors.weight.detach().clone()
    train, dev, test = (
        labelled_table(model, tokenizer, each) for each in (task.train, task.dev, task.test)
    )
    fit(model, train, dev, recipe.plan, loss=loss, tell=tell)
    model.requires_grad_(False)
    return TrainedModel(model, tokenizer, train, test, evaluate(model, test), start)


def shaped(vectors: NDArray[np.float32], recipe: ModelRecipe) -> NDArray[np.float32]:
    """The word vectors as a recipe wants them; padding stays zero."""
    lengths = np.linalg.norm(vectors, axis=1, keepdims=True)
    if recipe.evens_vectors:
        even = vectors / np.where(lengths > 0, lengths, 1.0)
        vectors = even * lengths[lengths > 0].mean(dtype=np.float32)
    return (vectors * recipe.scale).astype(np.float32)


def vector_lengths(task: RecurrentTask, vectors: str | None, seed: int = 0) -> tuple[float, float]:
    """The mean length of the vectors of a task's most frequent words, and of all others."""
    tokenizer, table = _words(task, vectors, seed)
    lengths = np.linalg.norm(table, axis=1)[len(tokenizer.all_special_ids) :]
    return float(lengths[:FREQUENT].mean()), float(lengths[FREQUENT:].mean())


def seeded(recipe: ModelRecipe, seed: int, epochs: int | None = None) -> ModelRecipe:
    """The same recipe with another seed, and another number of epochs if given."""
    plan = replace(recipe.plan, seed=seed, epochs=epochs or recipe.plan.epochs)
    return replace(recipe, plan=plan)


def chosen_device(device: str | None) -> str:
    """The device that was asked for, or the best there is."""
    return device or ("cuda" if torch.cuda.is_available() else "cpu")


def check_vectors(vectors: str | None) -> None:
    """Refuse word vectors that are not there, before anything is trained."""
    if vectors is not None and not Path(vectors).expanduser().exists():
        raise UsageError(f"there are no word vectors at {vectors}: give a folder or a wheel")


_KEPT: dict[tuple[str, int, str | None, int], tuple[Any, NDArray[np.float32]]] = {}


def _words(task: RecurrentTask, vectors: str | None, seed: int) -> tuple[Any, NDArray[np.float32]]:
    """The tokenizer of a task and the vectors of its words; the last ones are kept at hand."""
    key = (task.name, len(task.train), vectors, seed)
    if key not in _KEPT:
        tokenizer = build_vocabulary((text for text, _ in task.train), task.longest)
        table = (
            random_vectors(len(tokenizer), VECTOR_SIZE, seed)
            if vectors is None
            else read_vectors(vectors, tokenizer, seed)
        )
        _KEPT.clear()
        _KEPT[key] = (tokenizer, table)
    return _KEPT[key]


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
