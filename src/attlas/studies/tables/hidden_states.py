"""What attention and hidden states keep of tokens: claims, tables, plots."""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attlas.mathematics.rank_agreement import spearman
from attlas.results import Claim, ComparedTable
from attlas.results.support import plots
from attlas.results.support.report_sections import Figure
from attlas.studies.support.findings import (
    at_least,
    at_most,
    compared,
    decided,
    in_share,
    near,
    over_seeds,
    share_of,
    untested,
)
from attlas.studies.support.identifiable_encoder import KINDS, WIDTH
from attlas.studies.support.several_models import over_models, what_varies

BRUNNER, SUN = "Brunner et al. 2020", "Sun and Marasović 2021"
CORRELATION = "raw with effective"
LINEAR = "linear, cosine"
SIDES = ("raw", "effective")
FEWEST = 10  # texts longer than a head is wide, for a claim on them


def claims_on_states(found: Sequence[Mapping[str, Any]]) -> list[Claim]:
    """The claims on attention and states, decided on one record for each model."""
    over = what_varies(found)
    shared: dict[str, Any] = {"over": over if over == "models" else "layers"}
    rates = [each["recovered"][LINEAR] for each in found]
    own = [each["own"] for each in found]
    falls = [a >= b for each in own for a, b in pairwise(each)]
    width = found[0]["width"]
    return [
        decided(
            "Raw and effective attention are the same up to as many tokens as a head is wide",
            BRUNNER,
            at_least(0.999),
            over_known(found, lambda each: each.alike[each.short]),
            published=1.0,
            over=over,
            found=f"The figure is their correlation; a head is {width} wide.",
        ),
        _falling(found),
        _separators(found),
        decided(
            "Tokens can mostly be recovered from their hidden states, in every layer",
            BRUNNER,
            at_least(0.5),
            over_seeds([min(each) for each in rates]),
            found="The figure is the lowest share over layers, by a linear map and cosine.",
            **shared,
        ),
        decided(
            "Fewer can be recovered the deeper the layer",
            BRUNNER,
            at_least(0.0),
            over_seeds([each[0] - each[-1] for each in rates]),
            found="The figure is the share in the first layer less that in the last.",
            **shared,
        ),
        decided(
            "In the last layers another token contributes most to 30 % of the states",
            f"{BRUNNER}, in words",
            near(0.3, 0.15),
            over_seeds([each["other"][-1] for each in found]),
            published=0.3,
            over=over,
        ),
        decided(
            "The share of a token in its own state falls from layer to layer",
            BRUNNER,
            in_share("from each layer to the next the share falls"),
            share_of(falls),
            over="layers",
            found=f"From {np.mean([each[0] for each in own]):.2f} to "
            f"{np.mean([each[-1] for each in own]):.2f}.",
        ),
    ]


@dataclass(frozen=True, eq=False)
class TextFigures:
    """The figures of the texts of one model, and which texts are longer than a head is wide."""

    named: Mapping[str, NDArray[np.float64]]
    width: int

    @classmethod
    def of(cls, found: Mapping[str, Any]) -> "TextFigures":
        """Those that a part keeps."""
        named = {name: np.array(each, dtype=np.float64) for name, each in found["figures"].items()}
        return cls(named, found["width"])

    @property
    def keys(self) -> NDArray[np.float64]:
        """How many keys each text has."""
        return self.named["keys"]

    @property
    def alike(self) -> NDArray[np.float64]:
        """The correlation of raw and effective attention."""
        return self.named[CORRELATION]

    @property
    def short(self) -> NDArray[np.bool_]:
        """Which texts have at most as many keys as a head is wide."""
        return self.keys <= self.width


def over_known(
    found: Sequence[Mapping[str, Any]], value: Callable[[TextFigures], NDArray[np.float64]]
) -> Figure:
    """The mean of what is known of the texts of each model; unknown if no text has it."""
    values = [value(TextFigures.of(each)) for each in found]
    return over_models(values) if all(len(each) for each in values) else Figure(None)


def _falling(found: Sequence[Mapping[str, Any]]) -> Claim:
    said = "Beyond that they differ more the longer the text"
    every = [TextFigures.of(each) for each in found]
    longer = [int((~each.short).sum()) for each in every]
    if min(longer) < FEWEST:
        return untested(said, BRUNNER, f"only {min(longer)} texts are longer than a head is wide")
    ranks = [spearman(each.keys[~each.short], each.alike[~each.short]) for each in every]
    words = f"The figure is the rank correlation of length and likeness, on {longer[0]} texts."
    return decided(
        said, BRUNNER, at_most(-0.3), over_seeds(ranks), found=words, over=what_varies(found)
    )


def _separators(found: Sequence[Mapping[str, Any]]) -> Claim:
    said = "Effective attention puts less weight on separators than raw attention"
    if min(int((~TextFigures.of(each).short).sum()) for each in found) < FEWEST:
        return untested(said, SUN, "too few texts are longer than a head is wide")
    return decided(
        said,
        SUN,
        at_most(0.0),
        over_known(found, _moved_from_separators),
        over=what_varies(found),
        found="The figure is the weight on special tokens behind the first, effective less raw.",
    )


def _moved_from_separators(each: TextFigures) -> NDArray[np.float64]:
    raw, effective = (each.named[f"{side} weight on other special"] for side in SIDES)
    moved: NDArray[np.float64] = (effective - raw)[~each.short]
    return moved


def states_table(found: Sequence[Mapping[str, Any]]) -> ComparedTable:
    """Raw and effective attention, over texts."""
    figures = found[0]["figures"]
    names = [CORRELATION, "determined by the output", "determined through the query"]
    weights = [name for name in figures if " weight on " in name]
    ours = {
        name: over_models([each["figures"][name] for each in found])
        for name in [*names, *weights]
        if name in figures
    }
    reading = "Means over texts, of all layers, heads and rows."
    return compared("Raw and effective attention", reading, ours, {}, over=what_varies(found))


def layers_table(found: Sequence[Mapping[str, Any]]) -> ComparedTable:
    """How many tokens are recovered, and how they are mixed, layer by layer."""
    by_layer = {
        "recovered": [each["recovered"][LINEAR] for each in found],
        "own share": [each["own"] for each in found],
        "another has more": [each["other"] for each in found],
    }
    ours = {
        f"layer {layer}: {name}": over_seeds([each[layer] for each in models])
        for name, models in by_layer.items()
        for layer in range(len(models[0]))
    }
    reading = (
        "The share of tokens recovered by a linear map and cosine; the share of a token in its own "
        "state; and the share of states to which another token contributes most."
    )
    return compared("Tokens by layer", reading, ours, {}, over=what_varies(found))


def state_plots(
    every: Sequence[Mapping[str, Any]], encoders: Sequence[Mapping[str, Any]]
) -> list[plots.Plot]:
    """Attention, recovered and mixed tokens of the first model, and two null spaces."""
    states = every[0]  # of the first model
    layers = list(range(len(states["own"])))
    freedom = {}
    for kind in KINDS:
        lengths, free = zip(*encoders[0][kind]["freedom"][:200], strict=True)
        freedom[kind] = (lengths, free)
    by_layer: dict[str, Any] = {"x_label": "layer", "y_label": "share"}
    return [
        plots.scatter(
            "Raw and effective attention by length",
            {"texts": (states["figures"]["keys"], states["figures"][CORRELATION])},
            x_label="keys",
            y_label="correlation",
            reading=f"A point is a text of the first model; a head is {states['width']} wide.",
        ),
        plots.curve(
            "Tokens recovered from their states",
            layers,
            states["recovered"],
            **by_layer,
            reading="At 1 every state shows its token, by maps trained on other texts.",
        ),
        plots.curve(
            "Tokens mixed",
            layers,
            {"own share": states["own"], "another has more": states["other"]},
            **by_layer,
            reading="The lower the first and the higher the second, the more a state is mixed.",
        ),
        plots.scatter(
            "Null space of two encoders",
            freedom,
            x_label="tokens",
            y_label="free dimensions",
            reading=f"The usual one is free beyond {WIDTH // 4} tokens, the other beyond {WIDTH}.",
        ),
    ]
