"""Tables of `jain_wallace`, from the figures of its models."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from attlas.results import ComparedTable
from attlas.results.support.report_sections import Figure
from attlas.studies.recurrent import published
from attlas.studies.recurrent.causes import CAUSES
from attlas.studies.recurrent.explanation_figures import (
    CHANGE,
    FAR_LOOSE,
    FAR_TIGHT,
    SIGNIFICANT,
    TAU_ALONG,
    TAU_BOTH,
    TAU_GRADIENT,
    TAU_REMOVAL,
    TAU_SIZE,
    by_largest,
    mean_of,
)
from attlas.studies.support.findings import compared, over_seeds, over_texts

Key = tuple[str, str, str]  # task, encoder, attention
Parts = Mapping[Key, Sequence[Mapping[str, Any]]]  # for each seed, what was found
ADDITIVE = "additive"


def over_models(parts: Sequence[Mapping[str, Any]], value: Callable[[Any], float]) -> Figure:
    """The mean of a value over the seeds in which it is known, with its interval."""
    known = [found for found in map(value, parts) if not np.isnan(found)]
    return over_seeds(known) if known else Figure(None)


def class_mean(name: str) -> Callable[[Mapping[str, Any]], float]:
    """The mean over texts: of the means of both predicted classes, where there are two."""

    def value(found: Mapping[str, Any]) -> float:
        if found["classes"] > 2:
            return mean_of(found, name)
        return float(np.nanmean([mean_of(found, name, each) for each in range(2)]))

    return value


def tables_of(parts: Parts) -> tuple[ComparedTable, ...]:
    """All tables that have a row."""
    made = [
        _correlations(parts),
        _removals(parts),
        _significant(parts),
        _permutations(parts),
        _farthest(parts),
        _quality(parts),
    ]
    return tuple(each for each in made if each.rows)


def _named(key: Key) -> str:
    return ", ".join(key)


def _correlations(parts: Parts) -> ComparedTable:
    known: dict[Key, float] = {}
    for task, (bilstm, average, _) in published.TABLE_2.items():
        known |= {(task, "bilstm", ADDITIVE): bilstm, (task, "average", ADDITIVE): average}
    known |= {(task, "cnn", ADDITIVE): each for task, each in published.TABLE_2_OF_CNN.items()}
    known |= {
        (task, "bilstm", "scaled_dot"): each for task, each in published.SCALED_DOT_BILSTM.items()
    }
    return compared(
        "Table 2: Kendall's τ of attention and gradient",
        "Attention is cut from the graph. The gradient is multiplied by the token's vector and "
        "summed before its absolute value is taken. Mean of both predicted classes; facts beside "
        "their bAbI 1.",
        {_named(key): over_models(each, class_mean(TAU_GRADIENT)) for key, each in parts.items()},
        {_named(key): each for key, each in known.items()},
    )


def _removals(parts: Parts) -> ComparedTable:
    known = {(task, "bilstm", ADDITIVE): each[2] for task, each in published.TABLE_2.items()}
    known |= {(task, "cnn", ADDITIVE): each for task, each in published.REMOVAL_OF_CNN.items()}
    shown = {_named(key): each for key, each in known.items()}
    rows = {_named(key): over_models(each, class_mean(TAU_REMOVAL)) for key, each in parts.items()}
    for (task, encoder, attention), each in parts.items():
        if encoder == "bilstm" and attention == ADDITIVE:
            name = f"{task}, {encoder}: gradient and leave-one-out"
            rows[name] = over_models(each, class_mean(TAU_BOTH))
            shown[name] = published.GRADIENT_AND_REMOVAL.get(task, np.nan)
            size = f"{task}, {encoder}: attention and length of the gradient"
            rows[size] = over_models(each, class_mean(TAU_SIZE))
    return compared(
        "Table 2: Kendall's τ of attention and leave-one-out",
        "A token is deleted from its text. Below the models: how well the two references agree "
        "with each other, and τ with the length of the gradient, which the paper does not use.",
        {name: each for name, each in rows.items() if each.value is not None},
        {name: each for name, each in shown.items() if not np.isnan(each)},
    )


def _significant(parts: Parts) -> ComparedTable:
    known = {("sst", "bilstm"): 0.485, ("sst", "average"): 0.85, ("imdb", "bilstm"): 1.0}
    return compared(
        "Table 2: share of texts in which τ with the gradient is significant",
        "p at most 0.05. The share grows with the length of a text, whatever τ is.",
        {
            f"{task}, {encoder}": over_models(each, class_mean(SIGNIFICANT[TAU_GRADIENT]))
            for (task, encoder, attention), each in parts.items()
            if attention == ADDITIVE
        },
        {", ".join(key): each for key, each in known.items()},
    )


def _permutations(parts: Parts) -> ComparedTable:
    ours, known = {}, {}
    for (task, encoder, attention), each in parts.items():
        if attention != ADDITIVE:
            continue
        figures = published.PERMUTED.get((task, encoder), (None,) * len(published.BINS))
        for number, name in enumerate(published.BINS):
            row = f"{task}, {encoder}, largest weight {name}"
            found = over_models(each, lambda part, at=number: _median_in_bin(part, at))  # type: ignore[misc]
            if found.value is not None:
                ours[row], known[row] = found, figures[number]
    return compared(
        "Median change of the output under permutation, by the largest weight",
        "The median over 100 permutations of each text's total variation, then over texts. A bin "
        "without texts is left out.",
        ours,
        known,
    )


def _median_in_bin(part: Mapping[str, Any], number: int) -> float:
    values = by_largest(part, CHANGE, published.EDGES)[number]
    return float(np.median(values)) if len(values) else float("nan")


def _farthest(parts: Parts) -> ComparedTable:
    ours = {}
    for key, each in parts.items():
        for name, shown in ((FAR_LOOSE, "0.05"), (FAR_TIGHT, "0.01")):
            ours[f"{_named(key)}, ε = {shown}"] = over_models(each, class_mean(name))
    known = {
        f"{task}, {encoder}, {ADDITIVE}, ε = 0.05": each
        for (task, encoder), each in published.FAR_WITHIN_LOOSE.items()
    }
    return compared(
        "ε-max JSD of adversarial attention",
        "The farthest of five candidates that moves the output by no more than ε. The paper states "
        "0.01; the plots of its repository select by 0.05, and the published figures are read off "
        "those. At most ln 2 = 0.693.",
        ours,
        known,
    )


def _quality(parts: Parts) -> ComparedTable:
    ours, known = {}, {}
    for (task, encoder, attention), each in parts.items():
        for name, figures in (("accuracy", published.ACCURACY), ("auc", published.AREA)):
            row = f"{task}, {encoder}, {attention}: {name}"
            ours[row] = over_models(each, lambda part, at=name: float(part[at]))  # type: ignore[misc]
            known[row] = figures.get((task, encoder)) if attention == ADDITIVE else None
    return compared("How good the models are", "On test texts.", ours, known)


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


ON_TRANSFORMER = {
    "τ of attention and gradient": ("agreement", "τ of attention and gradient"),
    "τ of attention and leave-one-out": ("agreement", "τ of attention and leave-one-out"),
    "τ of gradient and leave-one-out": ("agreement", "τ of gradient and leave-one-out"),
    "median change under permutation": ("permutation", "median difference"),
    "ε-max JSD at ε = 0.05": ("adversarial_attention", "ε-max JSD at ε = 0.05"),
    "ε-max JSD at ε = 0.01": ("adversarial_attention", "ε-max JSD"),
}


def transformer_tables(found: Mapping[str, Any]) -> Iterator[ComparedTable]:
    """The same figures of the transformer; nothing was published for one."""
    if found:
        yield compared(
            "The same on a transformer",
            "The built-in sentiment model on built-in reviews, at the layer that is read out. "
            "Means over texts.",
            {
                name: over_texts(found[trial][each])
                for name, (trial, each) in ON_TRANSFORMER.items()
            },
            {},
            over="texts",
        )


def summaries(parts: Parts) -> dict[str, list[dict[str, float]]]:
    """The mean figures of every model."""
    return {
        ", ".join(key): [
            {name: mean_of(part, name) for name in part["texts"]}
            | {"accuracy": part["accuracy"], "auc": part["auc"]}
            for part in each
        ]
        for key, each in parts.items()
    }
