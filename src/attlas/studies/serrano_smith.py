"""The study `serrano_smith`: do the largest attention weights matter most to a decision?

Serrano and Smith, "Is Attention Interpretable?", ACL 2019.
"""

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from attlas.errors import UnknownNameError, UsageError
from attlas.models.recurrent.fitting import FitPlan
from attlas.results import ComparedTable
from attlas.results.support import plots
from attlas.results.support.report_sections import Figure
from attlas.studies.recurrent.erasing_figures import (
    DIVERGENCE_GAP,
    FLIPPABLE,
    LEAST_FIRST,
    MEAN_FLIPS,
    ORDERS,
    PERCENT,
    WEIGHT_GAP,
    Key,
    Parts,
    claims_of,
    column,
    erasing_figures,
    flip_shares,
    median_removed,
    removed_shares,
)
from attlas.studies.recurrent.tasks import TASKS, RecurrentTask, read_task
from attlas.studies.recurrent.training import ModelRecipe, check_vectors, seeded, train_model
from attlas.studies.support.findings import (
    Findings,
    compared,
    over_seeds,
)
from attlas.studies.support.run import Run
from attlas.studies.support.study import study

CELLS = ("both", "largest only", "random only", "neither")
SHOWN = 600  # points of a scatter
SHORT = dict(zip(("attention", "gradient", "product", "random"), ORDERS, strict=True))

APART = ("data", "form", "encoder", "seeds", "first_seed")
FORMS = ("hierarchical", "flat")
ENCODERS = ("bigru", "cnn", "none")
SENTENCES = ("sst", "sst5")  # tasks whose texts are one sentence: nothing to be hierarchical about
SIZES: Mapping[str, Mapping[str, Any]] = {
    "bigru": {"hidden_size": 100},
    "cnn": {"hidden_size": 100, "kernels": (3, 5)},
    "none": {},
}
DROPOUT = {"dropout": 0.44, "sentence_dropout": 0.22, "output_dropout": 0.3}
DIFFERS = (
    "Data: sst5 (5 classes, sentences), four_newsgroups (4 classes) and imdb (2 classes) in place "
    "of Yahoo, Amazon, Yelp and a 10-class IMDB, which are not to be had. With two classes a flip "
    "needs the other class alone, so imdb is no comparison for the published table.",
    "Word vectors: the mean of the vectors of a word's pieces (wordllama), or random, in place of "
    "word2vec trained on the data.",
    "Adam for all models, with amsgrad and a rate of 0.001, and the epoch of the best AUC on dev "
    "texts; the rate is not lowered on a plateau.",
    "Divergences are computed from probabilities; in their code from logits with shifts, which "
    "allows small negative values.",
    "A sentence ends with a full stop, an exclamation mark or a question mark.",
)
NOTES = (
    "Only the last attention is erased: over sentences in the hierarchical form, over words in "
    "the flat one. Its states stay fixed, and what is left of the weights is scaled to sum to one; "
    "with all weights gone the mixture is zero.",
    "The order by gradient is signed, as theirs; a chained assignment in their code breaks the "
    "order by the gradient's sign alone, which is not used here.",
)


@study(
    about="erasing attention weights: ΔJS, decision flips, weights to remove until a flip",
    question="Do the largest attention weights matter most to a model's decision?",
    paper="Serrano and Smith 2019, arXiv:1906.03731",
    quick={
        "data": ("reviews",),
        "form": ("flat",),
        "encoder": ("bigru", "none"),
        "seeds": 2,
        "epochs": 3,
        "rate": 0.01,
    },
    takes=(5, 1645),
)
def serrano_smith(
    run: Run,
    *,
    data: tuple[str, ...] = ("sst5", "four_newsgroups", "imdb"),
    form: tuple[str, ...] = ("hierarchical", "flat"),
    encoder: tuple[str, ...] = ("bigru", "cnn", "none"),
    seeds: int = 5,
    first_seed: int = 0,
    vectors: str | None = None,
    train_on: int = 8000,
    count: int = 1000,
    epochs: int | None = None,
    rate: float = 0.001,
    rows: int = 64,
    draws: int = 5,
) -> Findings:
    """Erase attention weights one by one, in four orders, until the decision flips.

    Args:
        data: The tasks; sst and sst5 are sentences, which only the flat form reads.
        form: The forms: hierarchical (words, then sentences), flat (words alone).
        encoder: The encoders: bigru, cnn, none.
        seeds: Models of each kind.
        first_seed: The first seed; the others follow.
        vectors: A folder or a wheel with word vectors; random ones if not given.
        train_on: Texts to train on, at most.
        count: Texts to test on, at most.
        epochs: Epochs of each training; those of the task if not given.
        rate: The learning rate.
        rows: Texts at once in training.
        draws: Random orders of each text.
    """
    _check(data, form, encoder)
    check_vectors(vectors)
    tasks = {name: read_task(name, train_on=train_on, count=count) for name in data}
    every = range(first_seed, first_seed + seeds)
    cells = list(_cells(data, form, encoder, every))
    if not cells:
        raise UsageError(f"{', '.join(data)} has only sentences: the form flat reads them")
    parts: dict[tuple[str, str, str], list[Any]] = {}
    for number, (task, shape, one, seed) in enumerate(cells):
        name = f"{task} {shape} {one} seed {seed}"
        run.tell(name, number, len(cells))
        plan = FitPlan(rate=rate, rows=rows, patience=5)
        recipe = seeded(_recipe(shape, one, vectors, plan), seed, epochs or tasks[task].epochs)
        work = partial(_measure, tasks[task], recipe, draws, run.device)
        parts.setdefault((task, shape, one), []).append(run.kept(name, work, APART))
    return Findings(
        claims=tuple(claims_of(parts)),
        differs=DIFFERS,
        tables=tuple(tables_of(parts)),
        plots=tuple(plots_of(parts)),
        seeds=tuple(every),
        notes=NOTES,
    )


def _recipe(form: str, encoder: str, vectors: str | None, plan: FitPlan) -> ModelRecipe:
    parts: dict[str, Any] = {"encoder": encoder, "attention_size": 100, **SIZES[encoder], **DROPOUT}
    if form == "hierarchical":
        parts["hierarchical"] = True
    return ModelRecipe(parts, vectors, plan=plan)


def _measure(
    task: RecurrentTask, recipe: ModelRecipe, draws: int, device: str | None
) -> dict[str, Any]:
    trained = train_model(task, recipe, device)
    return erasing_figures(trained, draws, recipe.plan.seed)


def _cells(
    data: Sequence[str], form: Sequence[str], encoder: Sequence[str], seeds: range
) -> Iterator[tuple[str, str, str, int]]:
    """Every model; sentences are read by flat ones alone."""
    for task in data:
        for shape in form:
            if shape == "hierarchical" and task in SENTENCES:
                continue
            for one in encoder:
                for seed in seeds:
                    yield task, shape, one, seed


def _check(data: Sequence[str], form: Sequence[str], encoder: Sequence[str]) -> None:
    allowed = {"task": (data, TASKS), "form": (form, FORMS), "encoder": (encoder, ENCODERS)}
    for kind, (given, known) in allowed.items():
        if not given:
            raise UsageError(f"name at least one {kind}: {', '.join(known)}")
        for each in given:
            if each not in known:
                raise UnknownNameError(kind, each, known)


def tables_of(parts: Parts) -> Iterator[ComparedTable]:
    """Flips, shares of weights by order, and how good the models are."""
    rows: dict[str, Figure] = {}
    known: dict[str, float | None] = {}
    for key, models in parts.items():
        for at, cell in enumerate(CELLS):
            row = f"{', '.join(key)}: {cell}"
            rows[row] = _each(models, lambda part, cell=cell: PERCENT * flip_shares(part)[cell])  # type: ignore[misc]
            known[row] = MEAN_FLIPS[at] if _is_comparable(key, models) else None
    yield compared(
        "Table 2: does erasing the largest weight, or a random one, flip the decision?",
        "Percent of the texts with two weights or more. Published: HANrnn, the mean of four data "
        "sets of 5 to 10 classes, which are not these; two classes are no comparison.",
        rows,
        known,
    )
    yield compared(
        "Figure 5: share of the weights erased before the decision flips",
        "The median over texts that some order flips; an order that does not flip such a text "
        "counts as 1.",
        {
            f"{', '.join(key)}: {order}": _each(
                models,
                lambda part, order=order: median_removed(part, order),  # type: ignore[misc]
            )
            for key, models in parts.items()
            for order in (*ORDERS, LEAST_FIRST)
        },
        {},
    )
    yield compared(
        "Models, and the share of their texts that some order flips",
        "On test texts.",
        {
            f"{', '.join(key)}: {name}": _each(models, value)
            for key, models in parts.items()
            for name, value in (
                ("accuracy", lambda part: float(part["accuracy"])),
                ("some order flips", lambda part: float(column(part, FLIPPABLE).mean())),
            )
        },
        {},
    )


def _is_comparable(key: Key, models: Sequence[Mapping[str, Any]]) -> bool:
    """Whether models are of the published form, and have more than two classes."""
    return key[1:] == ("hierarchical", "bigru") and models[0]["classes"] > 2


def _each(models: Sequence[Mapping[str, Any]], value: Callable[[Any], float]) -> Figure:
    known = [found for found in map(value, models) if not np.isnan(found)]
    return over_seeds(known) if known else Figure(None)


def plots_of(parts: Parts) -> Iterator[Mapping[str, Any]]:
    """ΔJS against the difference of weights, and the shares by order."""
    first = {key: models[0] for key, models in parts.items()}
    for task in dict.fromkeys(key[0] for key in first):
        yield plots.scatter(
            f"The largest weight against a random one: {task}",
            {
                ", ".join(key[1:]): (
                    column(part, WEIGHT_GAP)[:SHOWN],
                    column(part, DIVERGENCE_GAP)[:SHOWN],
                )
                for key, part in first.items()
                if key[0] == task
            },
            x_label="difference of the two weights",
            y_label="ΔJS: difference of the effects of erasing them",
            reading="A point is a text of the first seed. Near zero, even a much larger weight "
            "matters no more; below zero, the random one mattered more.",
        )
    for key, part in first.items():
        shares = {name: removed_shares(part, order) for name, order in SHORT.items()}
        if len(shares[ORDERS[0]]):
            yield plots.violins(
                f"Weights erased before the decision flips: {', '.join(key)}",
                shares,
                x_label="order",
                y_label="share of the weights",
                reading="A violin is the texts that some order flips, by attention, gradient, the "
                "product of both, or at random. The lower, the better the order finds what the "
                "decision depends on.",
            )
