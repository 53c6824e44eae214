"""Half of the texts to train on, and the other half to test on."""

from collections.abc import Sequence

import numpy as np

from attlas.models.asking.question import Question
from attlas.shapes import SomeTextValues

FEWEST = 4  # texts; fewer are not split


def split_texts(questions: Sequence[Question]) -> tuple[list[Question], list[Question]]:
    """Every other text to train on, the rest to test on; for both all texts if there are few."""
    if sum(map(len, questions)) < FEWEST:
        return list(questions), list(questions)
    order = sorted(number for question in questions for number in question.order)
    train = set(order[::2])
    halves: tuple[list[Question], list[Question]] = ([], [])
    for question in questions:
        for half, trains in zip(halves, (True, False), strict=True):
            rows = [row for row, text in enumerate(question.order) if (text in train) is trains]
            if rows:
                half.append(question.rows(rows))
    return halves


def text_numbers(questions: Sequence[Question]) -> tuple[int, ...]:
    """The numbers of the texts, in the order of the questions."""
    return tuple(number for question in questions for number in question.order)


def over_all_texts(
    values: SomeTextValues, tested: Sequence[Question], questions: Sequence[Question]
) -> SomeTextValues:
    """The figures of the tested texts in the order of all texts; NaN for those trained on."""
    known = dict(zip(text_numbers(tested), values.tolist(), strict=True))
    return np.array([known.get(number, np.nan) for number in text_numbers(questions)])


def split_note(train: Sequence[Question], tested: Sequence[Question]) -> str:
    """Say how many texts were trained on, and how many tested on."""
    first, second = set(text_numbers(train)), set(text_numbers(tested))
    if first & second:
        return f"There are too few texts to split: trained and tested on all {len(second)}."
    return f"Trained on {len(first)} texts and tested on {len(second)} others."
