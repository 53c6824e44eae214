"""What the sentiment model promises, measured on the embedded reviews and, if present, SST-2."""

from collections.abc import Sequence
from typing import Any

from attlas.data import Example, texts
from attlas.errors import AttlasError

# The hard reviews are full of turns and irony: accuracy on them is reported, not promised.
MINIMUM = {
    "accuracy on SST-2 dev": 0.9,
    "accuracy on reviews": 0.93,
    "right on plain sentences": 1.0,
}
PLAIN = {
    "a great film": "POSITIVE",
    "I loved every minute": "POSITIVE",
    "not a great film": "NEGATIVE",
    "the film was not good": "NEGATIVE",
    "boring and far too long": "NEGATIVE",
}


def verify(subject: Any, count: int = 200, seed: int = 1) -> dict[str, float]:
    """Accuracy on the reviews that are for or against, and on SST-2 dev if ATTLAS_DATA has it."""
    hard = [each for each in texts("reviews_hard") if each.label != "MIXED"]
    plain = [Example(text, label) for text, label in PLAIN.items()]
    figures = {
        "right on plain sentences": _accuracy(subject, plain),
        "accuracy on reviews": _accuracy(subject, texts("reviews")),
        "accuracy on reviews_hard": _accuracy(subject, hard),
    }
    try:
        held_out = texts("sst2", split="dev")
    except AttlasError:
        return figures  # SST-2 is not shipped
    return figures | {"accuracy on SST-2 dev": _accuracy(subject, held_out)}


def _accuracy(subject: Any, examples: Sequence[Example]) -> float:
    found = subject.predict([example.text for example in examples])["label"]
    right = [str(label) == each.label for label, each in zip(found, examples, strict=True)]
    return sum(right) / len(right)
