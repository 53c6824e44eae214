"""Baselines: the vectors of an input that says nothing, to compare an input with."""

from collections.abc import Sequence
from dataclasses import replace

import torch

from attlas.errors import UnknownNameError, UsageError
from attlas.models.asking.question import Question
from attlas.models.states.embeddings import entered_vectors
from attlas.removing.removal import mask_all, removable
from attlas.shapes import Hidden, StreamVectors

BASELINES = ("mask", "pad", "zero")


def baseline_vectors(
    question: Question, own: Sequence[StreamVectors], name: str
) -> list[StreamVectors]:
    """What each stream would enter as without its content; all other tokens keep their own.

    `own` are the vectors it enters as. `mask`: those of the mask token, or the nearest thing the
    tokenizer has, and of blank patches; `pad`: those of the padding token; `zero`: zeros.
    """
    if name not in BASELINES:
        raise UnknownNameError("baseline", name, BASELINES)
    if name == "mask":
        return entered_vectors(question.about(mask_all(question)))
    if name == "pad":
        return entered_vectors(_padded(question))
    content, streams = _content(question), question.inputs.streams()
    return [
        vectors.masked_fill(
            content[:, stream.stop - vectors.shape[1] : stream.stop, None].to(vectors.device), 0
        )
        for vectors, stream in zip(own, streams, strict=True)
    ]


def _padded(question: Question) -> Question:
    inputs, content = question.inputs, _content(question)
    number = getattr(question.subject.tokenizer, "pad_token_id", None)
    if number is None or any(inputs.arguments[each.argument].ndim > 2 for each in inputs.streams()):
        raise UsageError("there is no padding token here: use baseline='mask' or 'zero'")
    changed = {
        stream.argument: inputs.arguments[stream.argument].masked_fill(
            content[:, stream.start : stream.stop].to(question.subject.device), number
        )
        for stream in inputs.streams()
    }
    return question.about(replace(inputs, arguments={**inputs.arguments, **changed}))


def _content(question: Question) -> Hidden:
    """Which tokens of each row may be removed."""
    inputs = question.inputs
    content = torch.zeros(len(inputs), len(inputs.tokens[0]), dtype=torch.bool)
    for row in range(len(inputs)):
        content[row, removable(question, row)] = True
    return content
