"""The claims, tables and plots of `wiegreffe_pinter`; the rules were fixed before the figures."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from attlas.results import Claim, ComparedTable
from attlas.results.support import plots
from attlas.results.support.report_sections import Figure
from attlas.studies.recurrent.consistency_figures import (
    ALLOWED,
    GUIDES,
    SeedDistances,
    seed_distances,
)
from attlas.studies.support.findings import (
    at_least,
    at_most,
    compared,
    decided,
    over_seeds,
    over_texts,
    untested,
)

Parts = Mapping[str, Sequence[Mapping[str, Any]]]  # by task, for each seed
REPLICATION = "a later replication, by accuracy"
PAPER = "Wiegreffe and Pinter 2019"
# task: accuracy with attention and with uniform attention; facts beside bAbI 1
UNIFORM = {
    "sst": (0.803, 0.800),
    "imdb": (0.893, 0.883),
    "20newsgroups": (0.908, 0.898),
    "facts": (1.00, 0.485),
}
SHOWN = 600  # points of a scatter
MOST_COST, LEAST_COST = 0.02, 0.2  # accuracy that uniform attention costs


def claims_of(parts: Parts, task: str) -> Iterator[Claim]:
    """Claims about uniform attention, seeds, guides and adversaries."""
    yield decided(
        f"Uniform attention does almost as well on {task}.",
        "Section 3.2",
        at_most(MOST_COST),
        over_seeds([_cost(part) for part in parts[task]]),
        found="Accuracy that uniform attention costs.",
        published=_published_cost(task),
    )
    said = "Where the answer stands in one place of a text, uniform attention costs a lot (facts)."
    if "facts" in parts:
        yield decided(
            said,
            REPLICATION,
            at_least(LEAST_COST),
            over_seeds([_cost(part) for part in parts["facts"]]),
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
        yield untested(said, "Section 3.3", "It takes two seeds or more.")
        return
    by_seed = [seed_distances(models, at).jsd.mean() for at in range(len(models))]
    search = [_search_at(part, 0.05)["jsd"] for part in models]
    yield decided(
        said,
        "Section 3.3, Figure 3",
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
            "Section 3.4",
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
        "Section 4, Figure 5",
        at_least(0.0),
        over_seeds([far - near for far, near in zip(alone, apart, strict=True)]),
        found=f"Difference of the largest JSD {limit}.",
    )
    yield decided(
        "Yet adversarial models exist that attend differently with nearly the same answers.",
        "Section 4.2",
        at_least(0.2),
        over_seeds(apart),
        found=f"Largest JSD {limit}.",
    )


def _farthest(part: Mapping[str, Any], points: str) -> float:
    """The largest divergence of the attention among points within the allowed change."""
    within = [float(each["jsd"]) for each in part[points] if each["change"] <= ALLOWED]
    return max(within, default=0.0)


def _cost(part: Mapping[str, Any]) -> float:
    return float(part["base"]["accuracy"] - part["uniform"]["accuracy"])


def _published_cost(task: str) -> float | None:
    return UNIFORM[task][0] - UNIFORM[task][1] if task in UNIFORM else None


def _search_at(part: Mapping[str, Any], tolerance: float) -> Mapping[str, float]:
    found: Mapping[str, float] = next(
        each for each in part["search"] if each["tolerance"] == tolerance
    )
    return found


def tables_of(parts: Parts, task: str, trials: Mapping[str, Any]) -> Iterator[ComparedTable]:
    """Uniform attention by task, distances by seed, guides, the curve, and the transformer."""
    ours, known = {}, {}
    for name, models in parts.items():
        for at, kind in enumerate(("base", "uniform")):
            row = f"{name}: {'attention' if kind == 'base' else 'uniform'}"
            ours[row] = _over(models, lambda part, kind=kind: part[kind]["accuracy"])  # type: ignore[misc]
            known[row] = UNIFORM[name][at] if name in UNIFORM else None
            if "f1" in models[0][kind]:
                ours[f"{row}, F1"] = _over(models, lambda part, kind=kind: part[kind]["f1"])  # type: ignore[misc]
    reading = "Accuracy on test texts, and F1 of the second class. Published: a later replication."
    yield compared("Attention frozen to uniform", reading, ours, known)
    rows: dict[str, Figure] = {}
    for name, models in parts.items():
        if len(models) > 1:
            found = [seed_distances(models, at) for at in range(len(models))]
            rows[f"{name}: JSD of the attention"] = over_seeds([each.jsd.mean() for each in found])
            rows[f"{name}: change of the output"] = over_seeds(
                [each.change.mean() for each in found]
            )
    yield compared(
        "Variance over seeds",
        "Each seed's model against all others: the median over these, then the mean over texts.",
        rows,
        {},
    )
    guided = {
        f"{name} weights": _over(parts[task], lambda part, at=name: part["guides"][at]["accuracy"])  # type: ignore[misc]
        for name in GUIDES
        if all(name in part["guides"] for part in parts[task])
    }
    yield compared(
        f"A model without context, guided by fixed weights ({task})",
        "Accuracy. Own weights are those that such a model learns by itself; the adversary is the "
        "farthest model that keeps the output.",
        guided,
        {},
    )
    if trials:
        yield _of_transformer(trials)


def _of_transformer(trials: Mapping[str, Any]) -> ComparedTable:
    shown = {
        "change of the output with uniform attention": ("uniform", "difference"),
        "decisions that uniform attention flips": ("uniform", "flips"),
        "consistent adversary: JSD of the attention": (
            "consistent_adversary",
            "JSD of the attention",
        ),
        "consistent adversary: change of the output": (
            "consistent_adversary",
            "change of the output",
        ),
        "search on each text: JSD at ε = 0.05": (
            "consistent_adversary",
            "ε-max JSD of a search on each text at ε = 0.05",
        ),
    }
    return compared(
        "The same on a transformer",
        "The built-in sentiment model on built-in reviews, at the layer that is read out; not "
        "trained anew. Means over texts.",
        {name: over_texts(trials[trial][each]) for name, (trial, each) in shown.items()},
        {},
        over="texts",
    )


def plots_of(parts: Parts, task: str) -> Iterator[Mapping[str, Any]]:
    """The curve of change and distance, the distances by seed, and uniform attention by task."""
    models = parts[task]
    groups: dict[str, tuple[Any, Any]] = {
        "one model for all texts": _points(models, "curve"),
        "a search on each text": _points(models, "search"),
    }
    found = [seed_distances(models, at) for at in range(len(models))] if len(models) > 1 else []
    if found:
        groups["other seeds"] = (
            [each.change.mean() for each in found],
            [each.jsd.mean() for each in found],
        )
    yield plots.scatter(
        f"How far attention moves for what change of the output ({task})",
        groups,
        x_label="mean change of the output (total variation)",
        y_label="mean JSD of the attention",
        reading="A point is a model (one λ and seed), or a tolerance of the search. High and at "
        "the left, attention is free to be different.",
    )
    if found:
        yield _seed_plot(found[0], task)
    names = list(parts)
    yield plots.bars(
        "Accuracy that uniform attention costs",
        {name: float(np.mean([_cost(part) for part in parts[name]])) for name in names},
        x_label="accuracy",
        reading="Near zero, the task cannot test attention: it is not needed.",
    )


def _seed_plot(found: SeedDistances, task: str) -> Mapping[str, Any]:
    return plots.scatter(
        f"Attention of other seeds by the largest weight ({task})",
        {"texts": (found.largest[:SHOWN], found.jsd[:SHOWN])},
        x_label="largest weight of the first seed's model",
        y_label="median JSD of the other seeds' attention",
        reading="A point is a text. Low points are attended alike by models of all seeds.",
    )


def _points(models: Sequence[Mapping[str, Any]], name: str) -> tuple[list[float], list[float]]:
    every = [point for part in models for point in part[name]]
    return [point["change"] for point in every], [point["jsd"] for point in every]


def _over(models: Sequence[Mapping[str, Any]], value: Callable[[Any], float]) -> Figure:
    return over_seeds([value(part) for part in models])
