"""The claims and plots of `jain_wallace`; the rules were fixed before the figures were known."""

from collections.abc import Iterator, Mapping, Sequence
from typing import Any

from attlas.results import Claim
from attlas.results.support import plots
from attlas.results.support.report_sections import Figure
from attlas.studies.recurrent import published
from attlas.studies.recurrent.explanation_figures import (
    CHANGE,
    FAR_LOOSE,
    LARGEST,
    TAU_BOTH,
    TAU_GRADIENT,
    TAU_REMOVAL,
    by_largest,
    median_of,
)
from attlas.studies.recurrent.explanation_tables import (
    ADDITIVE,
    Key,
    Parts,
    class_mean,
    over_models,
)
from attlas.studies.support.findings import at_least, at_most, decided, near, over_seeds, untested

TABLE, REPOSITORY = "Table 2", "files of the published repository"
Models = Sequence[Mapping[str, Any]]
SHOWN = 600  # points of a scatter
SEVERAL = 3.0  # times: how much more permutation moves the average encoder


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
    quality = (("accuracy", 0.80, 0.808), ("auc", 0.88, 0.902))
    for name, least, known in quality:
        yield decided(
            f"The BiLSTM is a fair model of the task: its {name}.",
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
        "Figure 4",
        at_most(0.1),
        over_models(models, lambda part: median_of(part, CHANGE)),
        published=0.03,
    )
    yield decided(
        "Attention can be very different with the same output: ε-max JSD.",
        "Figure 6, ε = 0.05",
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
        "Figure 4",
        at_least(SEVERAL),
        over_seeds(ratios),
        found="The ratio of the two medians over texts, seed by seed.",
        published=0.163 / 0.03,
    )


def _difference(first: Models, second: Models, name: str) -> Figure:
    """The difference of two kinds of model, seed by seed."""
    value = class_mean(name)
    return over_seeds([value(a) - value(b) for a, b in zip(first, second, strict=False)])


def plots_of(parts: Parts) -> Iterator[Mapping[str, Any]]:
    """The paper's figures: violins, histograms as violins, scatter, and the heat-map pair."""
    first = {key: each[0] for key, each in parts.items() if each and key[2] == ADDITIVE}
    yield from _violins(first)
    yield plots.violins(
        "How far attention can be without a change of the output",
        {
            f"{task}, {encoder}": part["texts"][FAR_LOOSE]
            for (task, encoder, _), part in first.items()
        },
        x_label="",
        y_label="ε-max JSD at ε = 0.05",
        reading="A violin is all test texts of one model, of the first seed. At the top, attention "
        "could be as different as can be.",
    )
    yield plots.scatter(
        "Adversarial attention by the largest weight",
        {
            f"{task}, {encoder}": tuple(
                part["texts"][name][:SHOWN] for name in (LARGEST, FAR_LOOSE)
            )
            for (task, encoder, _), part in first.items()
        },
        x_label="largest weight of the model's own attention",
        y_label="ε-max JSD at ε = 0.05",
        reading="A point is a text of the first seed.",
    )
    for (task, encoder, _), part in first.items():
        if part["example"]:
            yield _pair(task, encoder, part["example"])
            break


def _violins(first: Mapping[Key, Mapping[str, Any]]) -> Iterator[Mapping[str, Any]]:
    for task in dict.fromkeys(key[0] for key in first):
        groups: dict[str, Any] = {}
        for (each, encoder, _), part in first.items():
            if each == task:
                apart = by_largest(part, CHANGE, published.EDGES)
                groups |= {
                    f"{encoder}, {name}": values
                    for name, values in zip(published.BINS, apart, strict=True)
                    if len(values)
                }
        yield plots.violins(
            f"Change of the output under permutation: {task}",
            groups,
            x_label="encoder, and largest weight",
            y_label="median total variation",
            reading="A violin is the test texts whose largest weight lies in a range, for the "
            "first seed. Near zero, it does not matter which token has which weight.",
        )


def _pair(task: str, encoder: str, shown: Mapping[str, Any]) -> Mapping[str, Any]:
    own, other = shown["probabilities"]
    return plots.maps(
        f"Two attentions, one output ({task}, {encoder})",
        ["weight"],
        shown["tokens"],
        {"the model's own": [shown["own"]], "adversarial": [shown["other"]]},
        reading=f"Both give {shown['label']!r}, with {own:.3f} and {other:.3f}. Their distance is "
        f"{shown['distance']:.2f} (Jensen–Shannon).",
    )
