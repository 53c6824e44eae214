"""Whether labels depend on the planted tokens: they are inserted, removed and swapped."""

from collections.abc import Sequence
from pathlib import Path
from random import Random

import numpy as np

from attlas.data import Example
from attlas.data.generated import shortcuts
from attlas.models.subject import Subject

KIND_OF = {
    "shortcut_token": "token",
    "shortcut_context": "context",
    "shortcut_pair": "pair",
    "shortcut_deceptive": "token",
}
MINIMUM = {"accuracy": 0.99, "accuracy, undecided": 0.99, "insertion": 0.99, "removal": 0.99}
MINIMUM_SWAPPING = {"swapping": 0.99}
MAXIMUM_MASS = 0.02  # of the attention of the deceptive model, in every layer


def verify(
    subject: Subject, count: int = 200, seed: int = 1, *, kind: str | None = None
) -> dict[str, float]:
    """Figures on texts that training never saw; the kind is known by the model's name if not given.

    `insertion`: the share of neutral texts that get the label of the tokens planted in them.
    `removal`: the share of decided texts that become NONE without any one of the deciding tokens.
    `swapping`, for pairs only: the share that get the other label when the two change places.
    `deciding mass, encoder.N`: the attention from the first token, where the label is read, to the
    deciding tokens, on average over heads and texts; `deciding mass` is the largest of these.
    """
    kind = kind or KIND_OF[Path(subject.name).name]
    random = Random(seed)
    decided = shortcuts.generate(count, seed, kind, held_out=True)
    undecided = shortcuts.generate_undecided(count, seed, kind, held_out=True)
    planted = [planted_neutral(kind, random) for _ in range(count)]
    removed = [less for example in decided for less in without_each(example)]
    figures = {
        "accuracy": _accuracy(subject, decided),
        "accuracy, undecided": _accuracy(subject, undecided),
        "insertion": _accuracy(subject, planted),
        "removal": _accuracy(subject, removed),
    }
    if kind == "pair":
        figures["swapping"] = _accuracy(subject, [swapped(example) for example in decided])
    return figures | deciding_mass(subject, decided)


def minimum(kind: str) -> dict[str, float]:
    """The smallest figures that a model of this kind must reach."""
    return MINIMUM | (MINIMUM_SWAPPING if kind == "pair" else {})


def planted_neutral(kind: str, random: Random) -> Example:
    """A neutral text with the tokens of either label planted in it, as training never saw it."""
    while True:
        planted = shortcuts.planted_words(kind, random.choice(shortcuts.LABELS[1:]), random)
        words = shortcuts.plant(shortcuts.write_neutral(random), planted, random)
        example = shortcuts.make_example(words, kind)
        if shortcuts.is_held_out(example):
            return example


def without_each(example: Example) -> list[Example]:
    """The text without the first deciding token, without the second, and so on."""
    text = str(example.text)
    return [
        shortcuts.make_example(f"{text[:start]} {text[end:]}".split(), example.fields["kind"])
        for start, end in example.spans
    ]


def swapped(example: Example) -> Example:
    """The text with its triggers exchanged."""
    other = dict(zip(shortcuts.TRIGGERS, reversed(shortcuts.TRIGGERS), strict=True))
    words = [other.get(word, word) for word in str(example.text).split()]
    return shortcuts.make_example(words, example.fields["kind"])


def deciding_mass(subject: Subject, examples: Sequence[Example]) -> dict[str, float]:
    """The attention from the readout row to the deciding tokens, for each site and the largest."""
    masses: dict[str, list[float]] = {}
    for example in examples:
        maps = subject.attention(example.text, queries=0)
        places = [1 + str(example.text)[:start].count(" ") for start, _ in example.spans]
        for site, weights in maps:
            masses.setdefault(site.name, []).append(float(weights[..., places].sum(-1).mean()))
    by_site = {f"deciding mass, {name}": float(np.mean(each)) for name, each in masses.items()}
    return by_site | {"deciding mass": max(by_site.values())}


def _accuracy(subject: Subject, examples: Sequence[Example]) -> float:
    labels = subject.predict([example.text for example in examples])["label"]
    pairs = zip(labels, examples, strict=True)
    return sum(bool(label == example.label) for label, example in pairs) / len(examples)
