"""From texts to Questions: encode them, group them by length, and resolve their targets."""

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any

from attlas.errors import AttlasError
from attlas.models.asking.memory import in_fitting_batches
from attlas.models.asking.open_model import OpenModel
from attlas.models.asking.question import Asked, Question, look
from attlas.models.encoding.encode_input import encode_input, encode_inputs
from attlas.models.encoding.inputs import Inputs
from attlas.models.encoding.request import Request


def pose(
    subject: OpenModel, texts: Sequence[Any], request: Request | Sequence[Request]
) -> list[Question]:
    """Questions about these texts that the model has not seen yet; equal lengths share one.

    The request is one for all texts, or a list with one for each. Targets are known once the model
    has run on a question.
    """
    subject.stream_axes  # noqa: B018  computed now, before a tap is open
    requests = [request] * len(texts) if isinstance(request, Request) else request
    try:
        encoded = encode_inputs(subject, texts, requests)
    except AttlasError as problem:
        if len(texts) > 1:
            _tell_which(problem, subject, texts, requests)
        raise
    return [
        Question(subject, inputs, tuple(Asked(requests[place]) for place in group), tuple(group))
        for each in encoded
        for group, inputs in _in_batches(subject, *each)
    ]


def _tell_which(
    problem: AttlasError, subject: OpenModel, texts: Sequence[Any], requests: Sequence[Request]
) -> None:
    """Add to a problem the number of the first text that the model cannot read."""
    for number, (text, request) in enumerate(zip(texts, requests, strict=True), 1):
        try:
            encode_input(subject, text, request)
        except AttlasError:
            problem.add_note(f"text {number:,} of {len(texts):,}")
            return


def ask(
    subject: OpenModel, texts: Sequence[Any], request: Request | Sequence[Request]
) -> list[Question]:
    """Questions about these texts with their targets: the model runs once on each.

    The request is one for all texts, or a list with one for each.
    """
    return [
        batch
        for question in pose(subject, texts, request)
        for batch in in_fitting_batches(
            range(len(question)), partial(_looked_at, question), _too_large(question)
        )
    ]


def _looked_at(question: Question, rows: Sequence[int]) -> Question:
    batch = question if len(rows) == len(question) else question.rows(rows)
    look(batch.subject, batch.inputs, batch.asked)
    return batch


def _too_large(question: Question) -> str:
    count, subject = len(question.inputs.tokens[0]), question.subject
    return f"{subject.name} on {subject.device} cannot take one text of {count} tokens"


def _in_batches(
    subject: OpenModel, group: list[int], inputs: Inputs
) -> Iterator[tuple[list[int], Inputs]]:
    """The texts of one shape in batches; long texts make small ones."""
    most = subject.rows_at_once(inputs, len(group))
    if len(group) <= most:
        yield group, inputs
        return
    for start in range(0, len(group), most):
        some = range(start, min(start + most, len(group)))
        yield group[start : start + most], inputs.rows(some)


def predict_each(subject: OpenModel, texts: Sequence[Any]) -> list[tuple[str, float]]:
    """The label that the model gives each text, with its probability or value."""
    rows: list[tuple[str, float]] = [("", 0.0)] * len(texts)
    for question in ask(subject, texts, Request()):
        for index, target, prediction in question.answers():
            best = prediction[0]
            sure = best["value"] if best["probability"] is None else best["probability"]
            rows[index] = (target.name, sure)
    return rows
