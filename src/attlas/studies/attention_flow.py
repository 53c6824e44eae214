"""The study `attention_flow`: raw attention, rollout and flow against the importance of tokens.

Abnar and Zuidema, "Quantifying Attention Flow in Transformers", ACL 2020.
"""

from collections.abc import Mapping, Sequence
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attlas.data import texts
from attlas.data.example import Example
from attlas.models.encoding.request import Request
from attlas.models.load import load
from attlas.models.subject import Subject
from attlas.results import Claim, ComparedTable
from attlas.results.support import plots
from attlas.results.support.report_sections import Figure
from attlas.studies.support.findings import (
    Findings,
    at_least,
    at_most,
    compared,
    decided,
    known_means,
    near,
    over_seeds,
)
from attlas.studies.support.run import Run
from attlas.studies.support.several_models import described, models_at, over_models, what_varies
from attlas.studies.support.small_transformer import Architecture, train_classifier
from attlas.studies.support.study import study
from attlas.studies.support.token_importance import IMPORTANCES, READINGS, agreement_by_layer

SOURCE = "Abnar and Zuidema 2020"
HELD_OUT = 1_000_000  # added to a seed: the sentences that a model is tested on
PUBLISHED = {  # the verb-number model, layers 1 to 6
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
OF_SEEDS = ("seeds", "first_seed", "model")  # settings that change no part, but which there are
OF_SENTIMENT = ("data", "count")  # settings that change nothing of the agreement sentences
OF_AGREEMENT = ("sentences", "training", "steps", "layers")  # and of the sentiment
DIFFERS = (
    "The verb-number sentences are generated, and end before the verb; the paper takes natural "
    "ones (Linzen et al. 2016).",
    "The verb-number model is a BERT of the paper's size (by default) over whole words; the paper "
    "takes GPT-2 blocks without a causal mask.",
    "Blank-out replaces a token by the mask token, which training has shown to the model; the "
    "paper takes the unknown token.",
    "Special tokens are left out of the correlations, and ranks of ties are averaged; the released "
    "code ranks ties densely.",
    "In SST the score explained is that of the true label; the released code always takes the "
    "positive one.",
    "The sentiment model is the one named in the settings, not DistilBERT.",
)

ByLayer = Mapping[str, Sequence[Sequence[float | None]]]  # `[text, layer]`, by name


@study(
    about="raw attention, rollout and flow against blank-out and gradient importance, by layer",
    question="Do rollout and flow say better than raw attention which tokens matter?",
    paper="Abnar and Zuidema 2020, arXiv:2005.00928",
    quick={
        "data": "reviews",
        "count": 6,
        "sentences": 12,
        "training": 400,
        "steps": 40,
        "layers": 2,
        "seeds": 1,
    },
    takes=(5, 281),
)
def attention_flow(
    run: Run,
    *,
    model: str = "sentiment",
    data: str = "sst2",
    count: int = 200,
    sentences: int = 400,
    training: int = 20000,
    steps: int = 1500,
    layers: int = 6,
    seeds: int = 5,
    first_seed: int = 0,
) -> Findings:
    """Correlate what attention says of tokens with what changes the answer, layer by layer.

    Args:
        model: The sentiment model: a built-in name, a folder, or a folder of such folders, one
            for each seed of the training.
        data: The texts for it, with labels that it knows.
        count: How many of them.
        sentences: How many agreement sentences each trained model is tested on.
        training: How many it is trained on.
        steps: Steps of its training.
        layers: Its layers; it has 8 heads and a width of 128.
        seeds: How many models are trained, each from another seed.
        first_seed: The first of these seeds; the others follow.
    """
    on_data = []
    for each in models_at(model):
        run.tell(f"sentiment by {each}", 0, 1)
        measure = partial(_sentiment, run, each, data, count)
        on_data.append(run.kept(f"sentiment by {each}", measure, (*OF_SEEDS, *OF_AGREEMENT)))
    size = Architecture(layers=layers, steps=steps)
    found = []
    every = range(first_seed, first_seed + seeds)
    for seed in every:
        run.tell(f"verb number, seed {seed}", seed - first_seed, seeds)
        measure = partial(_agreement, run, size, training, sentences, seed)
        found.append(run.kept(f"agreement seed {seed}", measure, (*OF_SEEDS, *OF_SENTIMENT)))
    means = {
        name: np.array([known_means(each["by layer"][name]) for each in found])
        for name in found[0]["by layer"]
    }
    accuracy = over_seeds([each["accuracy"] for each in found])
    return Findings(
        claims=(*claims_on_agreement(means), *claims_on_sentiment(on_data)),
        differs=DIFFERS,
        tables=(*_tables(means), _sentiment_table(on_data)),
        plots=(*_curves(means), _sentiment_curve(on_data)),
        seeds=tuple(every),
        notes=(
            f"The trained models give the right number in {accuracy.value:.3f} of the cases.",
            f"Sentiment: {described(models_at(model))}",
        ),
        details={"agreement": found, "sentiment": on_data},
    )


def _sentiment(run: Run, model: str, data: str, count: int) -> dict[str, Any]:
    subject = load(model, device=run.device)
    split = None if data in ("reviews", "reviews_hard") else "dev"
    examples = texts(data, split=split, count=count, seed=0)
    return _lists(agreement_by_layer(_questions(subject, examples)))


def _agreement(
    run: Run, size: Architecture, training: int, sentences: int, seed: int
) -> dict[str, Any]:
    taught = texts("agreement", count=training, seed=seed)
    known = {each.text for each in taught}
    drawn = texts("agreement", count=2 * sentences, seed=seed + HELD_OUT)
    asked = [each for each in drawn if each.text not in known][:sentences]
    subject = train_classifier(taught, size, seed=seed, device=run.device)
    said = subject.predict([str(each.text) for each in asked])["label"]
    right = [label == each.label for label, each in zip(said, asked, strict=True)]
    found = agreement_by_layer(_questions(subject, asked))
    return {"accuracy": float(np.mean(right)), "by layer": _lists(found)}


def _questions(subject: Subject, examples: Sequence[Example]) -> Any:
    """Questions about the true label of each text."""
    requests = [Request(target=each.label, truncate=True) for each in examples]
    return subject.ask([each.text for each in examples], requests)


def _lists(found: Mapping[str, NDArray[np.float64]]) -> dict[str, Any]:
    return {name: each.tolist() for name, each in found.items()}


def claims_on_agreement(means: Mapping[str, NDArray[np.float64]]) -> list[Claim]:
    """The claims on the verb-number task; `means` holds `[seed, layer]` by name."""
    raw = means["blank-out, raw"]
    last = {name: each[:, -1] for name, each in means.items()}
    published = {name: each[-1] for name, each in PUBLISHED.items()}
    claims = [
        decided(
            "In the first layer raw attention goes with importance, above it hardly does",
            f"{SOURCE}, table of blank-out: 0.69 in layer 1, 0.08 on average above",
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


def _tables(means: Mapping[str, NDArray[np.float64]]) -> list[ComparedTable]:
    made = []
    for importance in IMPORTANCES:
        ours, published = {}, {}
        for reading in READINGS:
            name = f"{importance}, {reading}"
            layers = means[name].shape[1]
            for layer in range(layers):
                ours[f"{reading}, layer {layer + 1}"] = over_seeds(means[name][:, layer].tolist())
                if layers == len(PUBLISHED[name]):
                    published[f"{reading}, layer {layer + 1}"] = PUBLISHED[name][layer]
        reading = f"Spearman's correlation with {importance}, a mean over sentences."
        made.append(compared(f"Verb number: {importance}", reading, ours, published))
    return made


def _sentiment_table(found: Sequence[ByLayer]) -> ComparedTable:
    ours = {name: over_models(_tops(found, name)) for name in found[0]}
    reading = "Spearman's correlation in the last layer, a mean over texts."
    return compared("Sentiment", reading, ours, PUBLISHED_SST, over=what_varies(found))


def _curves(means: Mapping[str, NDArray[np.float64]]) -> list[plots.Plot]:
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


def _sentiment_curve(found: Sequence[ByLayer]) -> plots.Plot:
    lines = {
        name: np.mean([known_means(each[name]) for each in found], axis=0) for name in found[0]
    }
    return _curve("Sentiment: correlation by layer", lines)


def _curve(title: str, lines: Mapping[str, Any]) -> plots.Plot:
    return plots.curve(
        title,
        list(range(1, len(next(iter(lines.values()))) + 1)),
        lines,
        x_label="layer",
        y_label="Spearman's correlation",
        reading="Higher: what attention says of tokens goes more with what changes the answer.",
    )
