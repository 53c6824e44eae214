"""The figures of `jain_wallace`: violins, adversarial attention, and the heat-map pair."""

from collections.abc import Iterator, Mapping
from typing import Any

from attlas.results.support import plots
from attlas.studies.recurrent import published
from attlas.studies.recurrent.explanation_figures import CHANGE, FAR_LOOSE, LARGEST, by_largest
from attlas.studies.recurrent.explanation_tables import ADDITIVE, Key, Parts

SHOWN = 600  # points of a scatter


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
