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
from attlas.studies.support.findings import Findings, known_means, over_seeds
from attlas.studies.support.run import Run
from attlas.studies.support.several_models import described, models_at, named
from attlas.studies.support.small_transformer import Architecture, train_classifier
from attlas.studies.support.study import study
from attlas.studies.support.token_importance import agreement_by_layer
from attlas.studies.tables.flow_agreement import (
    agreement_curves,
    agreement_tables,
    claims_on_agreement,
    claims_on_sentiment,
    sentiment_curve,
    sentiment_table,
)

HELD_OUT = 1_000_000  # added to a seed: the sentences that a model is tested on
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
    takes=(5, 372),
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
        part = f"sentiment by {named(each)}"
        on_data.append(run.kept(part, measure, (*OF_SEEDS, *OF_AGREEMENT)))
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
        tables=(*agreement_tables(means), sentiment_table(on_data)),
        plots=(*agreement_curves(means), sentiment_curve(on_data)),
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
