"""The study `wiegreffe_pinter`: when can attention be an explanation at all?

Wiegreffe and Pinter, "Attention is not not Explanation", EMNLP 2019.
"""

from collections.abc import Iterator, Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np

from attlas.errors import UnknownNameError, UsageError
from attlas.models.recurrent.fitting import FitPlan
from attlas.results import Claim
from attlas.studies.recurrent.consistency_figures import (
    ALLOWED,
    UNIFORM,
    ConsistencyPlan,
    Parts,
    pair_figures,
    plots_of,
    relearned_figures,
    tables_of,
    uniform_cost,
)
from attlas.studies.recurrent.on_transformer import (
    open_transformer,
    transformer_texts,
    trial_figures,
)
from attlas.studies.recurrent.readings import seed_distances
from attlas.studies.recurrent.tasks import TASKS, RecurrentTask, read_task
from attlas.studies.recurrent.training import ModelRecipe, check_vectors
from attlas.studies.support.findings import (
    Findings,
    at_least,
    at_most,
    decided,
    over_seeds,
    untested,
)
from attlas.studies.support.run import Run
from attlas.studies.support.study import study

REPLICATION = "a later replication, by accuracy"
MOST_COST, LEAST_COST = 0.02, 0.2  # accuracy that uniform attention costs

APART = ("data", "seeds", "first_seed", "transformer_count")
DIFFERS = (
    "Word vectors: a word's vector is the mean of the vectors of its pieces (wordllama, 256 wide), "
    "or random, in place of fastText.",
    "Tasks: facts, generated stories with a question, stands for the tasks that need attention; "
    "the paper's clinical notes are not to be had.",
    "Their code computes half of the total variation; here it is whole, so λ counts half as much. "
    "Sums over the test set are means here.",
    "Adversaries are trained for fewer epochs, in larger batches, and the model is chosen by dev "
    "texts, not by test texts.",
    "On the transformer nothing is trained anew with uniform attention; its adversary trains query "
    "and key weights alone.",
)
NOTES = (
    "The figures of the paper's tables are not in its repository, so what stands beside ours is "
    "from a later replication, and other claims are decided by their direction.",
)


@study(
    about="uniform attention, variance over seeds, guide weights, model-consistent adversaries",
    question="Does a task need attention, and could a trained model attend otherwise?",
    paper="Wiegreffe and Pinter 2019, arXiv:1908.04626",
    quick={
        "data": ("reviews",),
        "seeds": 2,
        "epochs": 2,
        "rate": 0.01,
        "hidden_size": 32,
        "lambdas": (0.003,),
        "adversary_epochs": 2,
        "search_steps": 20,
        "transformer_count": 0,
    },
    takes=(6, 1075),
)
def wiegreffe_pinter(
    run: Run,
    *,
    data: tuple[str, ...] = ("sst", "facts", "imdb", "20newsgroups"),
    seeds: int = 5,
    first_seed: int = 0,
    vectors: str | None = None,
    train_elsewhere: int = 4000,
    count_elsewhere: int = 400,
    epochs: int | None = None,
    rate: float = 0.001,
    hidden_size: int | None = None,
    lambdas: tuple[float, ...] = (0.0003, 0.001, 0.003, 0.01, 0.03),
    adversary_epochs: int = 20,
    adversary_rows: int = 128,
    search_steps: int = 500,
    transformer_count: int = 60,
) -> Findings:
    """Freeze attention, vary the seed, guide another model by it, and train adversaries.

    Args:
        data: The tasks; all experiments are run on the first, uniform attention and seeds on all.
        seeds: Models of each kind.
        first_seed: The first seed; the others follow.
        vectors: A folder or a wheel with word vectors; random ones if not given.
        train_elsewhere: Texts to train on, at most, after the first task.
        count_elsewhere: Texts to test on, at most, after the first task.
        epochs: Epochs of each training; those of the task if not given.
        rate: The learning rate.
        hidden_size: The width of the states; 256 if not given.
        lambdas: How much the distance of the attention counts against the change of the output.
        adversary_epochs: Epochs of each adversary, at most.
        adversary_rows: Texts at once in the training of an adversary.
        search_steps: Steps of the search for adversarial attention on each text.
        transformer_count: Texts on which a transformer is asked the same; 0 leaves it out.
    """
    for each in data:
        if each not in TASKS:
            raise UnknownNameError("task", each, TASKS)
    if not data or not lambdas or seeds < 1:
        raise UsageError("the study takes one task, one of the lambdas and one seed, or more")
    check_vectors(vectors)
    parts: dict[str, Any] = {"encoder": "bilstm", "attention": "additive"}
    if hidden_size:
        parts["hidden_size"] = hidden_size
    recipe = ModelRecipe(parts, vectors, plan=FitPlan(rate=rate))
    plan = ConsistencyPlan(
        recipe, epochs, lambdas, adversary_epochs, adversary_rows, 10, search_steps
    )
    found: dict[str, list[Any]] = {}
    for number, name in enumerate(data):
        size = (None, None) if number == 0 else (train_elsewhere, count_elsewhere)
        task = read_task(name, train_on=size[0], count=size[1])
        measure = _measure_whole if number == 0 else _measure_pair
        for seed in range(first_seed, first_seed + seeds):
            run.tell(f"{name}, seed {seed}", number, len(data))
            part = f"{'all of' if number == 0 else 'uniform on'} {name} seed {seed}"
            work = partial(measure, task, plan, seed, run.device)
            found.setdefault(name, []).append(run.kept(part, work, APART))
    trials = run.kept(
        "transformer", lambda: _transformer(run.device, transformer_count), APART[:-1]
    )
    return Findings(
        claims=tuple(claims_of(found, data[0])),
        differs=DIFFERS,
        tables=tuple(each for each in tables_of(found, data[0], trials) if each.rows),
        plots=tuple(plots_of(found, data[0])),
        seeds=tuple(range(first_seed, first_seed + seeds)),
        notes=NOTES,
        details={"models": {name: [_summary(part) for part in found[name]] for name in found}},
    )


def _measure_pair(
    task: RecurrentTask, plan: ConsistencyPlan, seed: int, device: str | None
) -> dict[str, Any]:
    return pair_figures(task, plan, seed, device)[1]


def _measure_whole(
    task: RecurrentTask, plan: ConsistencyPlan, seed: int, device: str | None
) -> dict[str, Any]:
    base, found = pair_figures(task, plan, seed, device)
    return {**found, **relearned_figures(base, plan, seed)}


def _transformer(device: str | None, count: int) -> dict[str, dict[str, list[float]]]:
    """Uniform attention and a consistent adversary, on so many texts; nothing for none."""
    if not count:
        return {}
    subject, asked = open_transformer(device), transformer_texts(count)
    return {
        trial: trial_figures(subject, asked, trial) for trial in ("uniform", "consistent_adversary")
    }


def _summary(part: dict[str, Any]) -> dict[str, Any]:
    return {name: each for name, each in part.items() if name not in ("weights", "sure")}


def claims_of(parts: Parts, task: str) -> Iterator[Claim]:
    """Claims about uniform attention, seeds, guides and adversaries."""
    yield decided(
        f"Uniform attention does almost as well on {task}.",
        "experiment with uniform attention",
        at_most(MOST_COST),
        over_seeds([uniform_cost(part) for part in parts[task]]),
        found="Accuracy that uniform attention costs.",
        published=_published_cost(task),
    )
    said = "Where the answer stands in one place of a text, uniform attention costs a lot (facts)."
    if "facts" in parts:
        yield decided(
            said,
            REPLICATION,
            at_least(LEAST_COST),
            over_seeds([uniform_cost(part) for part in parts["facts"]]),
            found="Accuracy that uniform attention costs.",
            published=_published_cost("facts"),
        )
    else:
        yield untested(said, REPLICATION, "The task facts was not asked for.")
    yield from _of_seeds(parts[task])
    yield from _of_guides(parts[task])
    yield from _of_adversaries(parts[task])


def _of_seeds(models: Sequence[Mapping[str, Any]]) -> Iterator[Claim]:
    said = "Models that differ by their seed attend more alike than adversarial attention does."
    if len(models) < 2:
        yield untested(said, "variance over seeds", "It takes two seeds or more.")
        return
    by_seed = [seed_distances(models, at).jsd.mean() for at in range(len(models))]
    search = [_search_at(part, 0.05)["jsd"] for part in models]
    yield decided(
        said,
        "variance over seeds",
        at_least(0.0),
        over_seeds([far - near for far, near in zip(search, by_seed, strict=True)]),
        found=f"JSD by seeds {np.mean(by_seed):.2f}, of a search on each text "
        f"{np.mean(search):.2f}.",
    )


def _of_guides(models: Sequence[Mapping[str, Any]]) -> Iterator[Claim]:
    for said, better, worse in (
        (
            "The weights of the recurrent model guide a model without context at least as well as "
            "uniform ones.",
            "base",
            "uniform",
        ),
        (
            "Adversarial weights guide it worse than those of the recurrent model.",
            "base",
            "adversary",
        ),
    ):
        yield decided(
            said,
            "diagnostic model with guide weights",
            at_least(0.0),
            over_seeds(
                [
                    part["guides"][better]["accuracy"] - part["guides"][worse]["accuracy"]
                    for part in models
                ]
            ),
            found="Difference of the two accuracies.",
        )


def _of_adversaries(models: Sequence[Mapping[str, Any]]) -> Iterator[Claim]:
    apart = [_farthest(part, "curve") for part in models]
    alone = [_farthest(part, "search") for part in models]
    limit = f"with a mean change of the output of at most {ALLOWED:g}; 0 if there is none"
    yield decided(
        "One adversarial model for all texts moves attention less, at the same change of the "
        "output, than a search on each text.",
        "model-consistent adversaries, curve of TVD and JSD",
        at_least(0.0),
        over_seeds([far - near for far, near in zip(alone, apart, strict=True)]),
        found=f"Difference of the largest JSD {limit}.",
    )
    yield decided(
        "Yet adversarial models exist that attend differently with nearly the same answers.",
        "model-consistent adversaries",
        at_least(0.2),
        over_seeds(apart),
        found=f"Largest JSD {limit}.",
    )


def _farthest(part: Mapping[str, Any], points: str) -> float:
    """The largest divergence of the attention among points within the allowed change."""
    within = [float(each["jsd"]) for each in part[points] if each["change"] <= ALLOWED]
    return max(within, default=0.0)


def _published_cost(task: str) -> float | None:
    return UNIFORM[task][0] - UNIFORM[task][1] if task in UNIFORM else None


def _search_at(part: Mapping[str, Any], tolerance: float) -> Mapping[str, float]:
    found: Mapping[str, float] = next(
        each for each in part["search"] if each["tolerance"] == tolerance
    )
    return found
