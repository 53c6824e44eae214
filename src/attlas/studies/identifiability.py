"""The study `identifiability`: what of attention the output depends on, and what of tokens is left.

Brunner et al., "On Identifiability in Transformers", ICLR 2020; Sun and Marasović, "Effective
Attention Sheds Light On Interpretability", Findings of ACL 2021; Bhardwaj et al., "More
Identifiable yet Equally Performant Transformers for Text Classification", ACL 2021.
"""

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attlas.data import texts
from attlas.data.example import Example
from attlas.mathematics.rank_agreement import spearman
from attlas.models.encoding.request import Request
from attlas.models.load import load
from attlas.results import Claim, ComparedTable
from attlas.results.support import plots
from attlas.results.support.report_sections import Figure
from attlas.studies.support.findings import (
    Findings,
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
from attlas.studies.support.identifiable_encoder import (
    KINDS,
    WIDTH,
    claims_on_encoders,
    compare_encoders,
    encoder_table,
)
from attlas.studies.support.run import Run
from attlas.studies.support.several_models import described, models_at, over_models, what_varies
from attlas.studies.support.small_transformer import make_lesson
from attlas.studies.support.study import study
from attlas.trials import TRIALS, Scope

BRUNNER, SUN = "Brunner et al. 2020", "Sun and Marasović 2021"
BUILT_IN = ("reviews", "reviews_hard")
CORRELATION = "raw with effective"
LINEAR = "linear, cosine"
SIDES = ("raw", "effective")
OF_SEEDS = ("seeds", "first_seed", "model")  # settings that change no part, but which there are
OF_ENCODERS = ("steps", "classify", "tested")  # settings that change nothing of the states
OF_STATES = ("data", "count", "mixed")  # and of the encoders
FEWEST = 10  # texts longer than a head is wide, for a claim on them
DIFFERS = (
    "The model is the one named in the settings, not BERT-base: a head of it has another width.",
    "Null spaces are those of texts without padding, head by head, with a threshold by the "
    "precision of the values; the released code of 2021 takes one rank for a padded batch.",
    "Figures of attention are means over all layers, heads and rows.",
    "The exact rates of the paper of 2020 are in figures; the share of mixed tokens is given in "
    "words.",
    "The encoders of 2021 are written anew from their definition: in the released code heads are "
    "not added, and the mask is turned round. They read at most 128 tokens.",
)


@study(
    about="raw and effective attention, tokens recovered and mixed, and an identifiable encoder",
    question="Does the output determine the attention, and a hidden state its token?",
    paper="Brunner et al. 2020, arXiv:1908.04211",
    quick={
        "data": "reviews",
        "count": 4,
        "mixed": 1,
        "classify": "reviews",
        "tested": 20,
        "steps": 10,
        "seeds": 1,
    },
    takes=(8, 274),
)
def identifiability(
    run: Run,
    *,
    model: str = "sentiment",
    data: str = "sst2",
    count: int = 200,
    mixed: int = 40,
    classify: str = "ag_news",
    tested: int = 2000,
    steps: int = 800,
    seeds: int = 5,
    first_seed: int = 0,
) -> Findings:
    """Measure null spaces, recover tokens from states, and train two kinds of encoder.

    Args:
        model: The model whose attention is measured: a built-in name, a folder, or a folder of
            such folders, one for each seed of the training.
        data: The texts for it.
        count: How many of them.
        mixed: How many of these are used for the mixing of tokens, which takes longest.
        classify: The data that the encoders are trained and tested on.
        tested: How many texts they are tested on.
        steps: Steps of their training.
        seeds: How many encoders of each kind are trained.
        first_seed: The first of their seeds; the others follow.
    """
    asked = {"count": count, "mixed": mixed}
    states = []
    for each in models_at(model):
        run.tell(f"states of {each}", 0, 1)
        measure = partial(_states, run, each, data, asked)
        states.append(run.kept(f"states of {each}", measure, (*OF_SEEDS, *OF_ENCODERS)))
    encoders = []
    every = range(first_seed, first_seed + seeds)
    for seed in every:
        run.tell(f"encoders, seed {seed}", seed - first_seed, seeds)
        measure = partial(_encoders, run, classify, tested, steps, seed)
        encoders.append(run.kept(f"encoders seed {seed}", measure, (*OF_SEEDS, *OF_STATES)))
    return Findings(
        claims=(*claims_on_states(states), *claims_on_encoders(encoders)),
        differs=DIFFERS,
        tables=(_states_table(states), _layers_table(states), encoder_table(encoders)),
        plots=tuple(_plots(states, encoders)),
        seeds=tuple(every),
        notes=(described(models_at(model)),),
        details={"states": states, "encoders": encoders},
    )


def _states(run: Run, model: str, data: str, asked: Mapping[str, int]) -> dict[str, Any]:
    subject = load(model, device=run.device)
    examples = _read(data, "dev", asked["count"], 0)
    questions = subject.ask([each.text for each in examples], Request(truncate=True))
    few = subject.ask([each.text for each in examples[: asked["mixed"]]], Request(truncate=True))
    weights = TRIALS["identifiability"].run(questions, Scope("all"), searches=1)
    tokens = TRIALS["token_identifiability"].run(questions)
    mixing = TRIALS["token_mixing"].run(few)
    return {
        "figures": {name: each.tolist() for name, each in weights.figures.items()},
        "width": min(weights.details["longest identifiable"].values()) - 1,
        "recovered": dict(tokens.details["by layer"]),
        "own": mixing.details["own share by layer"],
        "other": mixing.details["another has more by layer"],
    }


def _encoders(run: Run, data: str, tested: int, steps: int, seed: int) -> dict[str, Any]:
    taught = _read(data, "train", None, seed)
    asked = _read(data, "test", tested, seed)
    if data in BUILT_IN:
        known = {each.text for each in asked}
        taught = [each for each in taught if each.text not in known]
    return compare_encoders(make_lesson(taught, 20000), asked, steps, seed, run.device)


def _read(data: str, split: str, count: int | None, seed: int) -> list[Example]:
    return texts(data, split=None if data in BUILT_IN else split, count=count, seed=seed)


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


def _states_table(found: Sequence[Mapping[str, Any]]) -> ComparedTable:
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


def _layers_table(found: Sequence[Mapping[str, Any]]) -> ComparedTable:
    by_layer = {
        "recovered": [each["recovered"][LINEAR] for each in found],
        "own share": [each["own"] for each in found],
        "another has more": [each["other"] for each in found],
    }
    ours = {
        f"layer {layer + 1}: {name}": over_seeds([each[layer] for each in models])
        for name, models in by_layer.items()
        for layer in range(len(models[0]))
    }
    reading = (
        "The share of tokens recovered by a linear map and cosine; the share of a token in its own "
        "state; and the share of states to which another token contributes most."
    )
    return compared("Tokens by layer", reading, ours, {}, over=what_varies(found))


def _plots(
    every: Sequence[Mapping[str, Any]], encoders: Sequence[Mapping[str, Any]]
) -> list[plots.Plot]:
    states = every[0]  # of the first model
    layers = list(range(1, len(states["own"]) + 1))
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
