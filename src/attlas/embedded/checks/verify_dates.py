"""What the dates models rely on, found by changing one digit at a time.

Run `python -m attlas.embedded.checks.verify_dates` for the figures of the built-in models.
"""

from collections import defaultdict
from collections.abc import Sequence
from random import Random

import torch

from attlas.data.example import Example
from attlas.data.generated.dates import generate, other_digits, with_digit
from attlas.embedded.checks.verify_recall import report
from attlas.models.load import load
from attlas.models.subject import Subject

MINIMUM = {
    "exact match": 0.99,
    "another digit at the source: it is copied": 0.98,
    "another digit at the source: the rest stays": 0.98,
}
MOST_ROWS = 128
ANSWER = 11  # ten characters and the end


def verify(subject: Subject, count: int = 200, seed: int = 1) -> dict[str, float]:
    """How often held-out dates are right, and copied digits follow a change of their source."""
    examples = generate(count, seed)
    answers = rewrite(subject, [str(example.text) for example in examples])
    changes = _changes(examples, Random(f"changes {seed}"))
    after = rewrite(subject, [str(changed.text) for _, _, changed in changes])
    copied, kept = 0, 0
    for (index, place, changed), answer in zip(changes, after, strict=True):
        before = answers[index]
        copied += answer[place : place + 1] == str(changed.label)[place]
        kept += answer[:place] + answer[place + 1 :] == before[:place] + before[place + 1 :]
    right = sum(answer == example.label for answer, example in zip(answers, examples, strict=True))
    values = (right / len(examples), copied / len(changes), kept / len(changes))
    return dict(zip(MINIMUM, values, strict=True))


def _changes(examples: Sequence[Example], random: Random) -> list[tuple[int, int, Example]]:
    """Every copied digit, replaced at its source: the example, the place, the changed example."""
    return [
        (index, place, with_digit(example, place, random.choice(digits)))
        for index, example in enumerate(examples)
        for place in example.fields["copied"]
        if (digits := other_digits(example, place))
    ]


def rewrite(subject: Subject, texts: Sequence[str]) -> list[str]:
    """What the model writes for each text, by greedy generation; no text is padded."""
    by_length: dict[int, list[int]] = defaultdict(list)
    for index, text in enumerate(texts):
        by_length[len(text)].append(index)
    answers = [""] * len(texts)
    for group in by_length.values():
        for start in range(0, len(group), MOST_ROWS):
            chosen = group[start : start + MOST_ROWS]
            written = _generate(subject, [texts[index] for index in chosen])
            for index, answer in zip(chosen, written, strict=True):
                answers[index] = answer
    return answers


@torch.no_grad()
def _generate(subject: Subject, texts: list[str]) -> list[str]:
    inputs = subject.tokenizer(texts, return_tensors="pt").to(subject.device)
    model = subject.model
    ids = model.generate(  # type: ignore[operator]
        input_ids=inputs["input_ids"],
        attention_mask=inputs["attention_mask"],
        max_new_tokens=ANSWER,
        do_sample=False,
    )
    written: list[str] = subject.tokenizer.batch_decode(ids, skip_special_tokens=True)
    return written


def main() -> None:
    """Print the figures of the built-in models."""
    for name in ("dates", "dates_plain"):
        print(name)
        report(verify(load(name, device="cpu"), count=1000), MINIMUM)


if __name__ == "__main__":
    main()
