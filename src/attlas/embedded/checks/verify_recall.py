"""What the recall model relies on, found by changing one word at a time.

Run `python -m attlas.embedded.checks.verify_recall` for the figures of the built-in model.
"""

from collections.abc import Sequence
from random import Random

import torch

from attlas.data.example import Example, Span
from attlas.data.generated.recall import KEYS, VALUES, generate
from attlas.models.load import load
from attlas.models.subject import Subject

MINIMUM = {
    "accuracy": 0.99,
    "another value: it is the answer": 0.98,
    "another key before the value: the value is no longer the answer": 0.98,
    "another key asked for: its value is the answer": 0.98,
    "another key elsewhere: the answer stays": 0.98,
    "another value elsewhere: the answer stays": 0.98,
}


def verify(subject: Subject, count: int = 200, seed: int = 1) -> dict[str, float]:
    """The share of held-out texts in which each change of a word does what it should."""
    examples = generate(count, seed)
    random = Random(f"changes {seed}")
    changes = [_changes(example, random) for example in examples]
    plain = [(str(each.text), str(each.label), True) for each in examples]
    figures = {"accuracy": _share(subject, plain)}
    names = [name for name in MINIMUM if name != "accuracy"]
    for name, column in zip(names, zip(*changes, strict=True), strict=True):
        figures[name] = _share(subject, column)
    return figures


Change = tuple[str, str, bool]  # a text, an answer, and whether the model should give it


def _changes(example: Example, random: Random) -> tuple[Change, ...]:
    """One change of each kind, in the order of MINIMUM."""
    text, value = str(example.text), str(example.label)
    words = text.split()
    keys, values = words[:-1:2], words[1::2]
    new_key = random.choice([key for key in KEYS if key not in keys])
    new_value = random.choice([each for each in VALUES if each not in values])
    other = random.choice([i for i, key in enumerate(keys) if key != words[-1]])
    places = example.fields
    return (
        (_exchange(text, places["value"], new_value), new_value, True),
        (_exchange(text, places["key"], new_key), value, False),
        (_exchange(text, places["query"], keys[other]), values[other], True),
        (_with_word(words, 2 * other, new_key), value, True),
        (_with_word(words, 2 * other + 1, new_value), value, True),
    )


def _exchange(text: str, span: Span, word: str) -> str:
    return text[: span[0]] + word + text[span[1] :]


def _with_word(words: Sequence[str], place: int, word: str) -> str:
    return " ".join([*words[:place], word, *words[place + 1 :]])


def _share(subject: Subject, changes: Sequence[Change]) -> float:
    right = [(answer(subject, text) == word) == expected for text, word, expected in changes]
    return sum(right) / len(right)


@torch.no_grad()
def answer(subject: Subject, text: str) -> str:
    """The word the model thinks likeliest to come next."""
    inputs = subject.tokenizer(text, return_tensors="pt").to(subject.device)
    number = subject.model(input_ids=inputs["input_ids"]).logits[0, -1].argmax()
    word: str = subject.tokenizer.decode([int(number)])
    return word


def report(figures: dict[str, float], minimum: dict[str, float]) -> None:
    """Print the figures, each with the smallest allowed value."""
    for name, value in figures.items():
        print(f"{name}: {value:.4f} (at least {minimum[name]:.2f})")


def main() -> None:
    """Print the figures of the built-in model."""
    report(verify(load("recall", device="cpu"), count=2000), MINIMUM)


if __name__ == "__main__":
    main()
