"""Training for the studies: one recurrent model for a task, its parts and a seed."""

from collections.abc import Mapping
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import numpy as np
import torch
from numpy.typing import NDArray

from attlas.errors import UsageError
from attlas.models.recurrent.batches import TextTable
from attlas.models.recurrent.fitting import FitPlan, Loss, Told, evaluate, fit
from attlas.models.recurrent.learning import build_classifier, labelled_table
from attlas.models.recurrent.words import build_vocabulary, random_vectors, read_vectors
from attlas.studies.recurrent.tasks import RecurrentTask

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
