"""The study `poster`: exchanged keys, adversarial keys, and the null space, on a classifier.

Vafaie, Ogbuagu, Hajianpour and Drozdyuk, "Is Attention Explanation in Transformers?" (poster).
"""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from attlas.data import texts
from attlas.data.example import Example
from attlas.models.load import load
from attlas.models.subject import Subject
from attlas.results import Claim
from attlas.results.support import plots
from attlas.results.support.report_sections import Figure
from attlas.studies.support.findings import (
    Findings,
    at_least,
    at_most,
    compared,
    decided,
    in_share,
    listed,
    near,
    over_seeds,
    share_of,
)
from attlas.studies.support.key_measures import measure_keys
from attlas.studies.support.run import Run
from attlas.studies.support.small_transformer import Architecture, train_classifier
from attlas.studies.support.study import study

TRAINED = "trained"  # the word for models that the study trains
SOURCE = "poster, results"
UNCHANGED = 0.01  # of accuracy: a smaller change is none
KEYS = ("accuracy", "accuracy, adversarial", "agreement", "change of the loss")
WIDTHS = ("keys attended to", "keys attended to, adversarial")
MARKS = ("AUPRC of the marked", "AUPRC of the marked, adversarial")
DIFFERS = (
    "The poster names neither its data nor the size of its model: ours are in the settings.",
    "Keys are exchanged 20 times by default, special tokens keep theirs, and accuracies are means "
    "over the exchanges.",
    "The distance of adversarial keys is bounded by twice their length; the poster's loss has no "
    "lower bound.",
    "The network that makes adversarial keys is trained on half of the texts and tested on the "
    "rest; the poster does not say whether it was.",
    "That adversarial keys have less noise is read as: attention on fewer keys, and more on the "
    "words that people marked, where the data have marks.",
)


@study(
    about="keys exchanged layer by layer, adversarial keys, null space, and three further claims",
    question="Is attention explanation in transformers?",
    paper="poster: Is Attention Explanation in Transformers?",
    quick={
        "model": "sentiment",
        "data": "reviews",
        "count": 8,
        "seeds": 1,
        "repeats": 2,
        "epochs": 1,
    },
    takes=(6, 301),
)
def poster(
    run: Run,
    *,
    model: str = "trained",
    data: str = "sst2",
    count: int = 400,
    layers: int = 4,
    steps: int = 2000,
    seeds: int = 5,
    first_seed: int = 0,
    repeats: int = 20,
    epochs: int = 10,
    alpha: float = 0.5,
) -> Findings:
    """Exchange keys, replace them by adversarial ones, and measure what weights are free.

    Args:
        model: `trained` trains a small transformer for each seed; else a built-in name or a folder,
            and seeds are those of what is drawn.
        data: Texts with labels: those trained on (split train) and those tested on (split dev).
        count: How many texts to test on.
        layers: Layers of the trained models; they have 8 heads and a width of 128.
        steps: Steps of their training.
        seeds: How many seeds.
        first_seed: The first of them; the others follow.
        repeats: How often keys are exchanged.
        epochs: Epochs of the network that makes adversarial keys.
        alpha: The weight of the classification loss against the distance of the keys.
    """
    found = []
    every = range(first_seed, first_seed + seeds)
    for seed in every:
        run.tell(f"seed {seed}", seed - first_seed, seeds)

        def compute(seed: int = seed) -> dict[str, Any]:
            subject = _subject(run, model, data, Architecture(layers=layers, steps=steps), seed)
            adversary = {"epochs": epochs, "alpha": alpha}
            return measure_keys(subject, _tested(data, count, seed), seed, repeats, adversary)

        found.append(run.kept(f"seed {seed}", compute, ("seeds", "first_seed")))
    return Findings(
        claims=tuple(claims_on(found)),
        differs=DIFFERS,
        tables=(_table(found),),
        plots=tuple(_plots(found)),
        seeds=tuple(every),
        details={"seeds": found},
    )


def _subject(run: Run, model: str, data: str, size: Architecture, seed: int) -> Subject:
    if model != TRAINED:
        return load(model, device=run.device)
    taught = texts(data, split="train", count=None, seed=seed)
    return train_classifier(taught, size, seed=seed, device=run.device)


def _tested(data: str, count: int, seed: int) -> list[Example]:
    own = data in ("reviews", "reviews_hard")
    return texts(data, split=None if own else "dev", count=count, seed=seed)


def drops(found: Mapping[str, Any]) -> dict[str, float]:
    """How much accuracy is lost by exchanging the keys of all layers, and of each."""
    right = found["right"]
    own = right["right as it is"]
    return {
        name.removeprefix("right, "): own - value
        for name, value in right.items()
        if name != "right as it is"
    }


def claims_on(found: Sequence[Mapping[str, Any]]) -> list[Claim]:
    """The claims of the poster, decided on one record for each seed."""
    lost = [drops(each) for each in found]
    layers = [name for name in lost[0] if name.startswith("layer")]
    above = {name: over_seeds([each[name] for each in lost]) for name in layers[1:]}
    fresh = [each["adversarial"] for each in found]
    return [
        decided(
            "Exchanging the keys costs the model only 6 points of accuracy",
            SOURCE,
            near(0.06, 0.03),
            over_seeds([each["all layers"] for each in lost]),
            published=0.06,
            found="The figure is of all layers at once.",
        ),
        decided(
            "Shuffling any layer but the first does not change the accuracy",
            SOURCE,
            in_share(f"in each layer above the first the mean loss is at most {UNCHANGED:g}"),
            share_of([abs(each.value or 0.0) <= UNCHANGED for each in above.values()]),
            found=listed({name: each.value or 0.0 for name, each in above.items()}),
            over="layers",
        ),
        decided(
            "Keys that a network makes leave the answers the same and differ from the original",
            SOURCE,
            at_least(0.95),
            over_seeds([each["agreement"] for each in fresh]),
            found="The figure is the share of held-out texts with the same answer; keys move by "
            f"{np.mean([each['distance of the keys'] for each in fresh]):.2f} of their length.",
        ),
        decided(
            "Weights are identifiable only if the text is no longer than a head is wide",
            "poster, null space",
            in_share("no attention over more keys than a head is wide has an empty null space"),
            share_of(_beyond(found)),
            over="texts and layers",
            found="A bound of linear algebra: it must hold.",
        ),
        decided(
            "Weights are identifiable whenever the text is no longer than a head is wide",
            "poster, null space",
            in_share("every attention over at most as many keys has an empty null space"),
            share_of(_within(found)),
            over="texts and layers",
            found="The bound says nothing of this side: values can be collinear all the same.",
        ),
        *_further(found, fresh),
    ]


def _beyond(found: Sequence[Mapping[str, Any]]) -> list[bool]:
    rows = [row for each in found for row in each["freedom"]]
    return [least >= keys - width for keys, width, least, _ in rows if keys > width]


def _within(found: Sequence[Mapping[str, Any]]) -> list[bool]:
    rows = [row for each in found for row in each["freedom"]]
    return [most == 0 for keys, width, _, most in rows if keys <= width]


def _further(found: Sequence[Mapping[str, Any]], fresh: Sequence[Mapping[str, Any]]) -> list[Claim]:
    """The three further claims: less noise, the first layer explains, training may gain."""
    fewer = over_seeds([each[WIDTHS[1]] - each[WIDTHS[0]] for each in fresh])
    marked = [each for each in fresh if each.get(MARKS[0]) is not None]
    told = ""
    if marked:
        gain = over_seeds([each[MARKS[1]] - each[MARKS[0]] for each in marked])
        told = f" On the marked words the attention gains {gain.value:+.3f} AUPRC."
    depth = len(found[0]["first layer"])
    first = [each["first layer"][0] - max(each["first layer"][1:]) for each in found]
    return [
        decided(
            "Adversarial keys are the original ones without the noise",
            "poster, conclusion",
            at_most(0.0),
            fewer,
            found=f"The figure is how many keys a row attends to, less before.{told}",
        ),
        decided(
            "The attention of the first layer explains, that of others does not",
            SOURCE,
            at_least(0.0),
            over_seeds(first),
            found="The figure is the correlation of the first layer's attention with blank-out "
            f"importance, less the highest of the other {depth - 1} layers.",
        ),
        decided(
            "The original loss can be decreased by adversarial training",
            "poster, conclusion",
            at_most(0.0),
            over_seeds([each["change of the loss"] for each in fresh]),
            found="The figure is the change of the loss on held-out texts with adversarial keys.",
        ),
        decided(
            "Adversarial training may improve the model",
            "poster, conclusion, as a plan",
            at_least(UNCHANGED),
            over_seeds([each[KEYS[1]] - each[KEYS[0]] for each in fresh]),
            found="The figure is the accuracy on held-out texts with the keys that the network was "
            "trained to make, less that without. The poster does not try it.",
        ),
    ]


def _table(found: Sequence[Mapping[str, Any]]) -> Any:
    lost = [drops(each) for each in found]
    ours = {
        f"exchanged keys, {name}": over_seeds([each[name] for each in lost]) for name in lost[0]
    }
    published = {name: 0.0 for name in ours if "layer " in name and not name.endswith("layer 0")}
    published["exchanged keys, all layers"] = 0.06
    own = over_seeds([each["right"]["right as it is"] for each in found])
    for name in KEYS[1:]:
        values = [each["adversarial"].get(name) for each in found]
        known = [each for each in values if each is not None]
        ours[f"adversarial keys: {name}"] = over_seeds(known) if known else Figure(None)
    rows = {"accuracy as it is": own, **ours}
    reading = "Losses of accuracy, as shares, and what adversarial keys do on held-out texts."
    return compared("Accuracy lost", reading, rows, published)


def _plots(found: Sequence[Mapping[str, Any]]) -> list[plots.Plot]:
    lost = [drops(each) for each in found]
    figures = {name: over_seeds([each[name] for each in lost]) for name in lost[0]}
    rows = [row for each in found for row in each["freedom"]]
    depth = range(len(found[0]["first layer"]))
    means = np.mean([each["first layer"] for each in found], axis=0)
    return [
        plots.bars(
            "Accuracy lost when keys are exchanged",
            {name: each.value for name, each in figures.items()},
            intervals={name: (each.low, each.high) for name, each in figures.items()},
            x_label="accuracy lost",
            reading="A short bar: the keys of this layer hardly matter. The poster says 0.06 for "
            "all layers, and 0 for each but the first.",
        ),
        plots.scatter(
            "How many dimensions of the weights are free",
            {"texts and layers": ([row[0] for row in rows], [row[3] for row in rows])},
            x_label="keys",
            y_label="dimensions of the null space",
            reading=f"Beyond the width of a head, here {rows[0][1]}, it cannot be empty.",
        ),
        plots.curve(
            "What the attention of each layer says of importance",
            list(depth),
            {"raw attention": means},
            x_label="layer",
            y_label="correlation with blank-out",
            reading="Higher: the attention of this layer goes more with what changes the answer.",
        ),
    ]
