"""Tables and claims of `jain_wallace`; each claim has its rule beside it."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

import numpy as np

from attlas.results import Claim, ComparedTable
from attlas.results.support.report_sections import Figure
from attlas.studies.recurrent import published
from attlas.studies.recurrent.explanation_figures import (
    ADDITIVE,
    CHANGE,
    FAR_LOOSE,
    FAR_TIGHT,
    SIGNIFICANT,
    TAU_BOTH,
    TAU_GRADIENT,
    TAU_REMOVAL,
    TAU_SIZE,
    Key,
    Parts,
    by_largest,
    class_mean,
    mean_of,
    median_of,
    over_models,
)
from attlas.studies.support.findings import (
    at_least,
    at_most,
    compared,
    decided,
    near,
    over_seeds,
    untested,
)

TABLE, REPOSITORY = "Table 2", "files of the published repository"
Models = Sequence[Mapping[str, Any]]
SEVERAL = 3.0  # times: how much more permutation moves the average encoder


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
        "The median over the permutations of each text's total variation, then over texts. A bin "
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
        for name, figures in (("accuracy", published.ACCURACY), ("AUC", published.AREA)):
            row = f"{task}, {encoder}, {attention}: {name}"
            ours[row] = over_models(each, lambda part, at=name: float(part[at.lower()]))  # type: ignore[misc]
            known[row] = figures.get((task, encoder)) if attention == ADDITIVE else None
    return compared("How good the models are", "On test texts.", ours, known)


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


def claims_of(parts: Parts, task: str) -> Iterator[Claim]:
    """The claims about the models of one task."""
    models = {
        (encoder, attention): each
        for (name, encoder, attention), each in parts.items()
        if name == task
    }
    bilstm, average = (models.get((each, ADDITIVE), ()) for each in ("bilstm", "average"))
    if bilstm:
        yield from _of_bilstm(bilstm)
    if average:
        yield decided(
            "Where tokens do not mix, attention agrees with the gradient (average encoder).",
            TABLE,
            at_least(0.5),
            over_models(average, class_mean(TAU_GRADIENT)),
            published=0.605,
        )
    if bilstm and average:
        yield from _of_both(bilstm, average)
    dotted = models.get(("bilstm", "scaled_dot"), ())
    if bilstm and dotted:
        yield decided(
            "With scaled-dot attention, τ with the gradient is lower than with additive.",
            REPOSITORY,
            at_least(0.0),
            _difference(bilstm, dotted, TAU_GRADIENT),
            published=0.35 - 0.073,
        )
    if not (bilstm and average):
        yield untested(
            "Attention agrees less with the gradient where an encoder mixes tokens.",
            TABLE,
            "It takes a BiLSTM and an average encoder with additive attention.",
        )


def _of_bilstm(models: Models) -> Iterator[Claim]:
    quality = (("accuracy", "accuracy", 0.80, 0.808), ("auc", "AUC", 0.88, 0.902))
    for name, shown, least, known in quality:
        yield decided(
            f"The BiLSTM is a fair model of the task: its {shown}.",
            REPOSITORY,
            at_least(least),
            over_models(models, lambda part, at=name: float(part[at])),  # type: ignore[misc]
            published=known,
        )
    gradient = over_models(models, class_mean(TAU_GRADIENT))
    yield decided(
        "In a BiLSTM, attention agrees only weakly with the gradient.",
        TABLE,
        at_most(0.5),
        gradient,
        published=0.35,
    )
    yield decided(
        "How weakly: τ with the gradient is about 0.35.",
        TABLE,
        near(0.35, 0.1),
        gradient,
        published=0.35,
    )
    yield decided(
        "In a BiLSTM, attention agrees only weakly with leave-one-out: τ is about 0.3.",
        TABLE,
        near(0.295, 0.1),
        over_models(models, class_mean(TAU_REMOVAL)),
        published=0.295,
    )
    yield decided(
        "Gradient and leave-one-out agree with each other more than attention with the gradient.",
        REPOSITORY,
        at_least(0.0),
        over_seeds(
            [class_mean(TAU_BOTH)(each) - class_mean(TAU_GRADIENT)(each) for each in models]
        ),
        published=0.656 - 0.35,
    )
    yield decided(
        "Permuting the weights of a BiLSTM hardly moves its output (median over texts).",
        "violins of permuted attention",
        at_most(0.1),
        over_models(models, lambda part: median_of(part, CHANGE)),
        found=f"The median over all texts; {published.OF_SMALL}",
        published=0.03,
    )
    yield decided(
        "Attention can be very different with the same output: ε-max JSD.",
        "histograms of the published repository, ε = 0.05",
        near(0.487, 0.1),
        over_models(models, class_mean(FAR_LOOSE)),
        published=0.487,
    )


def _of_both(bilstm: Models, average: Models) -> Iterator[Claim]:
    yield decided(
        "τ with the gradient is much lower for the BiLSTM than for the average encoder.",
        TABLE,
        at_least(0.2),
        _difference(average, bilstm, TAU_GRADIENT),
        published=0.605 - 0.35,
    )
    ratios = [
        median_of(one, CHANGE) / max(median_of(other, CHANGE), 1e-9)
        for one, other in zip(average, bilstm, strict=False)
    ]
    yield decided(
        "Permutation moves the average encoder several times as much as the BiLSTM.",
        "violins of permuted attention",
        at_least(SEVERAL),
        over_seeds(ratios),
        found=f"The ratio of the two medians over texts, seed by seed; {published.OF_SMALL}",
        published=0.163 / 0.03,
    )


def _difference(first: Models, second: Models, name: str) -> Figure:
    """The difference of two kinds of model, seed by seed."""
    value = class_mean(name)
    return over_seeds([value(a) - value(b) for a, b in zip(first, second, strict=False)])
