"""What moves τ of attention and gradient in a BiLSTM: one thing changed at a time."""

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor, nn

from attlas.models.recurrent.batches import Batch
from attlas.models.recurrent.fitting import Loss, balanced_weight, label_loss
from attlas.results import ComparedTable
from attlas.studies.recurrent.explanation_figures import (
    TAU_ALONG,
    TAU_GRADIENT,
    TAU_SIZE,
    agreement_figures,
    mean_of,
    over_models,
)
from attlas.studies.recurrent.tasks import RecurrentTask
from attlas.studies.recurrent.training import ModelRecipe, seeded, train_model
from attlas.studies.support.findings import compared, over_seeds
from attlas.studies.support.run import Run


@dataclass(frozen=True)
class Cause:
    """One change of the recipe, in words, and what it makes of the recipe and the loss."""

    words: str
    change: Callable[[ModelRecipe], ModelRecipe] = lambda recipe: recipe
    averages: bool = False  # the loss over the batch instead of its sum

    def loss(self, task: RecurrentTask) -> Loss | None:
        """The loss of the training; None for the usual one."""
        return averaged_loss(task) if self.averages else None


def averaged_loss(task: RecurrentTask) -> Loss:
    """The mean of the loss over the batch: decay then weighs more against it."""
    numbers = [task.labels.index(label) for _, label in task.train]
    summed = label_loss(balanced_weight(numbers))

    def loss(model: nn.Module, batch: Batch) -> Tensor:
        return summed(model, batch) / len(batch.labels)

    return loss


def _with_parts(**parts: Any) -> Callable[[ModelRecipe], ModelRecipe]:
    return lambda recipe: replace(recipe, parts={**recipe.parts, **parts})


def _with_plan(**fields: Any) -> Callable[[ModelRecipe], ModelRecipe]:
    return lambda recipe: replace(recipe, plan=replace(recipe.plan, **fields))


CAUSES: Mapping[str, Cause] = {
    "averaged_loss": Cause("loss averaged over the batch, not summed", averages=True),
    "no_decay": Cause("no weight decay", _with_plan(decay=0.0)),
    "short_vectors": Cause("vectors a quarter as long", lambda each: replace(each, scale=0.25)),
    "long_vectors": Cause("vectors three times as long", lambda each: replace(each, scale=3.0)),
    "even_vectors": Cause("vectors all as long", lambda each: replace(each, evens_vectors=True)),
    "random_vectors": Cause("random vectors", lambda each: replace(each, vectors=None)),
    "fixed_vectors": Cause("vectors not trained", lambda each: replace(each, trains_vectors=False)),
    "half_width": Cause("half the hidden width", _with_parts(hidden_size=128)),
    "dropout": Cause("dropout 0.3 on the vectors", _with_parts(dropout=0.3)),
    "two_epochs": Cause("two epochs", _with_plan(epochs=2)),
    "slow": Cause("a third of the learning rate", _with_plan(rate=3e-4)),
    "fast": Cause("three times the learning rate", _with_plan(rate=3e-3)),
}


def measure_causes(
    run: Run,
    task: RecurrentTask,
    recipe: ModelRecipe,
    names: Sequence[str],
    seeds: Iterable[int],
    epochs: int | None,
    apart_from: Sequence[str],
) -> dict[str, list[dict[str, float]]]:
    """τ with the gradient under each change, for each seed."""
    found: dict[str, list[dict[str, float]]] = {}
    for name in names:
        for seed in seeds:

            def compute(cause: Cause = CAUSES[name], seed: int = seed) -> dict[str, float]:
                chosen = cause.change(seeded(recipe, seed, epochs or task.epochs))
                trained = train_model(task, chosen, run.device, loss=cause.loss(task))
                return {**trained.figures, **agreement_figures(trained)}

            part = f"{task.name} {recipe.parts['encoder']} {name} seed {seed}"
            run.tell(part, len(found), len(names))
            found.setdefault(name, []).append(run.kept(part, compute, apart_from))
    return found


def cause_tables(
    changed: Mapping[str, Sequence[Mapping[str, float]]], usual: Sequence[Mapping[str, Any]]
) -> Iterator[ComparedTable]:
    """What a change of the training makes of τ with the gradient, and with its length."""
    if not changed:
        return
    titles = {
        TAU_GRADIENT: "gradient · vector",
        TAU_ALONG: "gradient · vector divided by the length of the vector",
        TAU_SIZE: "the length of the gradient",
    }
    for name, title in titles.items():
        rows = {"nothing changed": over_models(usual, lambda part, at=name: mean_of(part, at))}  # type: ignore[misc]
        for cause, each in changed.items():
            rows[CAUSES[cause].words] = over_seeds([found[name] for found in each])
        yield compared(
            f"What moves τ of attention and {title}",
            "One thing changed at a time in the training of the first model, all else as above.",
            rows,
            {},
        )
    rows = {
        CAUSES[cause].words: over_seeds([e["accuracy"] for e in each])
        for cause, each in changed.items()
    }
    yield compared("Accuracy under these changes", "On test texts.", rows, {})
