"""Texts to train on, and others to judge by."""

from collections.abc import Sequence

import numpy as np

from attlas.models.asking.question import Question
from attlas.shapes import SomeTextValues

FEWEST = 4  # texts, below which none are kept apart


def halves(questions: Sequence[Question]) -> tuple[list[Question], list[Question]]:
    """Every other text to train on, the rest to judge by; both are all where there are too few."""
    if sum(map(len, questions)) < FEWEST:
        return list(questions), list(questions)
    order = sorted(number for question in questions for number in question.order)
    train = set(order[::2])
    parts: tuple[list[Question], list[Question]] = ([], [])
    for question in questions:
        for part, wanted in zip(parts, (True, False), strict=True):
            rows = [row for row, text in enumerate(question.order) if (text in train) is wanted]
            if rows:
                part.append(question.rows(rows))
    return parts


def numbers_of(questions: Sequence[Question]) -> tuple[int, ...]:
    """The numbers of the texts that are asked about, in the order of the questions."""
    return tuple(number for question in questions for number in question.order)


def among(
    values: SomeTextValues, judged: Sequence[Question], questions: Sequence[Question]
) -> SomeTextValues:
    """Figures of the texts that were judged, among all: not a number for those trained on."""
    known = dict(zip(numbers_of(judged), values.tolist(), strict=True))
    return np.array([known.get(number, np.nan) for number in numbers_of(questions)])


def note_on(kept: Sequence[Question], judged: Sequence[Question]) -> str:
    """How many texts were trained on, and how many judged."""
    trained, tried = set(numbers_of(kept)), set(numbers_of(judged))
    if trained & tried:
        return f"Too few texts to keep any apart: trained on all {len(tried)} that are judged."
    return f"Trained on {len(trained)} texts, judged on {len(tried)} others."
