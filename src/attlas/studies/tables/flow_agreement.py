"""How raw attention, rollout and flow go with the importance of tokens: claims, tables, plots."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attlas.results import Claim, ComparedTable
from attlas.results.support import plots
from attlas.results.support.report_sections import Figure
from attlas.studies.support.findings import (
    at_least,
    at_most,
    compared,
    decided,
    known_means,
    near,
    over_seeds,
)
from attlas.studies.support.several_models import over_models, what_varies
from attlas.studies.support.token_importance import IMPORTANCES, READINGS

SOURCE = "Abnar and Zuidema 2020"
PUBLISHED = {  # the verb-number model, layer by layer
    "blank-out, raw": (0.69, 0.10, -0.11, -0.09, 0.20, 0.29),
    "blank-out, rollout": (0.32, 0.38, 0.51, 0.62, 0.70, 0.71),
    "blank-out, flow": (0.32, 0.44, 0.70, 0.70, 0.71, 0.70),
    "input gradient, raw": (0.53, 0.16, -0.06, 0.00, 0.24, 0.46),
    "input gradient, rollout": (0.22, 0.27, 0.39, 0.47, 0.53, 0.54),
    "input gradient, flow": (0.22, 0.31, 0.54, 0.61, 0.60, 0.61),
}
PUBLISHED_SST = {  # DistilBERT, the last layer
    "input gradient, raw": 0.09,
    "input gradient, rollout": 0.13,
    "input gradient, flow": 0.14,
}

ByLayer = Mapping[str, Sequence[Sequence[float | None]]]  # `[text, layer]`, by name


def claims_on_agreement(means: Mapping[str, NDArray[np.float64]]) -> list[Claim]:
    """The claims on the verb-number task; `means` holds `[seed, layer]` by name."""
    raw = means["blank-out, raw"]
    last = {name: each[:, -1] for name, each in means.items()}
    published = {name: each[-1] for name, each in PUBLISHED.items()}
    claims = [
        decided(
            "In the first layer raw attention goes with importance, above it hardly does",
            f"{SOURCE}, table of blank-out: 0.69 in the first layer, 0.08 on average above",
            at_least(0.2),
            over_seeds((raw[:, 0] - raw[:, 1:].mean(axis=1)).tolist()),
            published=0.69 - 0.078,
            found="The figure is the first layer less the mean of those above, with blank-out.",
        )
    ]
    for importance, least in (("blank-out", 0.1), ("input gradient", 0.0)):
        for reading in ("rollout", "flow"):
            names = f"{importance}, {reading}", f"{importance}, raw"
            claims.append(
                decided(
                    f"From the last layer, {reading} goes with {importance} more than raw weights",
                    f"{SOURCE}, table of {importance}",
                    at_least(least),
                    over_seeds((last[names[0]] - last[names[1]]).tolist()),
                    published=published[names[0]] - published[names[1]],
                    found="The figure is the difference of the two correlations.",
                )
            )
    claims.append(
        decided(
            "Rollout from the last layer correlates with blank-out at 0.71",
            f"{SOURCE}, table of blank-out",
            near(0.71, 0.1),
            over_seeds(last["blank-out, rollout"].tolist()),
            published=0.71,
        )
    )
    return claims


def claims_on_sentiment(found: Sequence[ByLayer]) -> list[Claim]:
    """The claims on sentiment: correlations are small, and differ little."""
    tops = {name: _tops(found, name) for name in found[0]}
    grad = [over_models(tops[f"input gradient, {reading}"]) for reading in READINGS]
    largest = max(grad, key=lambda each: abs(each.value or 0.0))
    apart = [
        [_less(a, b) for a, b in zip(one, other, strict=True)]
        for one, other in zip(
            tops["input gradient, rollout"], tops["input gradient, raw"], strict=True
        )
    ]
    over = what_varies(found)
    return [
        decided(
            "In sentiment classification no reading of attention goes with input gradients",
            f"{SOURCE}, table on SST-2: at most 0.14",
            at_most(0.25),
            Figure(abs(largest.value or 0.0), largest.low, largest.high, largest.n),
            published=0.14,
            over=over,
            found="The figure is the largest of the three in the last layer.",
        ),
        decided(
            "There too, rollout is no worse than raw attention",
            f"{SOURCE}, table on SST-2: 0.13 against 0.09",
            at_least(0.0),
            over_models(apart),
            published=0.04,
            over=over,
        ),
    ]


def _tops(found: Sequence[ByLayer], name: str) -> list[list[float | None]]:
    """A correlation in the last layer, `[model][text]`."""
    return [[row[-1] for row in each[name]] for each in found]


def _less(one: float | None, other: float | None) -> float | None:
    return None if one is None or other is None else one - other


def agreement_tables(means: Mapping[str, NDArray[np.float64]]) -> list[ComparedTable]:
    """A table for each kind of importance, layer by layer; `means` as for the claims."""
    made = []
    for importance in IMPORTANCES:
        ours, published = {}, {}
        for reading in READINGS:
            name = f"{importance}, {reading}"
            layers = means[name].shape[1]
            for layer in range(layers):
                ours[f"{reading}, layer {layer}"] = over_seeds(means[name][:, layer].tolist())
                if layers == len(PUBLISHED[name]):
                    published[f"{reading}, layer {layer}"] = PUBLISHED[name][layer]
        reading = f"Spearman's correlation with {importance}, a mean over sentences."
        made.append(compared(f"Verb number: {importance}", reading, ours, published))
    return made


def sentiment_table(found: Sequence[ByLayer]) -> ComparedTable:
    """The correlations on sentiment in the last layer."""
    ours = {name: over_models(_tops(found, name)) for name in found[0]}
    reading = "Spearman's correlation in the last layer, a mean over texts."
    return compared("Sentiment", reading, ours, PUBLISHED_SST, over=what_varies(found))


def agreement_curves(means: Mapping[str, NDArray[np.float64]]) -> list[plots.Plot]:
    """The same as the tables on the verb number, drawn beside the published figures."""
    made = []
    for importance in IMPORTANCES:
        lines = {reading: means[f"{importance}, {reading}"].mean(axis=0) for reading in READINGS}
        layers = len(lines["raw"])
        if layers == len(PUBLISHED["blank-out, raw"]):
            lines |= {
                f"{each}, published": np.array(PUBLISHED[f"{importance}, {each}"])
                for each in READINGS
            }
        made.append(_curve(f"Verb number: correlation with {importance}", lines))
    return made


def sentiment_curve(found: Sequence[ByLayer]) -> plots.Plot:
    """The correlations on sentiment, layer by layer."""
    lines = {
        name: np.mean([known_means(each[name]) for each in found], axis=0) for name in found[0]
    }
    return _curve("Sentiment: correlation by layer", lines)


def _curve(title: str, lines: Mapping[str, Any]) -> plots.Plot:
    return plots.curve(
        title,
        list(range(len(next(iter(lines.values()))))),
        lines,
        x_label="layer",
        y_label="Spearman's correlation",
        reading="Higher: what attention says of tokens goes more with what changes the answer.",
    )
