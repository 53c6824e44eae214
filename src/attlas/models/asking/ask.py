"""From texts to Questions: encode them, group them by length, and resolve their targets."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch

from attlas.models.asking.memory import in_fitting_batches
from attlas.models.asking.open_model import OpenModel
from attlas.models.asking.question import Question
from attlas.models.asking.resolve import TargetCase, resolve
from attlas.models.encoding.encode_input import encode_input
from attlas.models.encoding.inputs import Inputs, group_by_shape, stack
from attlas.models.encoding.request import Request
from attlas.models.encoding.target import QUANTITIES, Target
from attlas.models.facts.evaluation_mode import evaluation_mode
from attlas.shapes import Logits


def ask(
    subject: OpenModel, texts: Sequence[Any], request: Request | Sequence[Request]
) -> list[Question]:
    """Questions about these texts; texts of equal length share one.

    The request is one for all texts, or a list with one for each.
    """
    subject.stream_axes  # noqa: B018  computed now, before a tap is open
    requests = [request] * len(texts) if isinstance(request, Request) else request
    encoded = [encode_input(subject, text, its) for text, its in zip(texts, requests, strict=True)]

    def question(order: Sequence[int]) -> Question:
        asked = [requests[i] for i in order]
        return _question(subject, order, stack([encoded[i] for i in order]), asked)

    return [
        batch
        for group in _groups(subject, encoded)
        for batch in in_fitting_batches(group, question, _too_large(subject, encoded[group[0]]))
    ]


def _too_large(subject: OpenModel, inputs: Inputs) -> str:
    count = len(inputs.tokens[0])
    return f"{subject.name} on {subject.device} cannot take one text of {count} tokens"


def _groups(subject: OpenModel, encoded: Sequence[Inputs]) -> Iterator[list[int]]:
    """Which texts share a batch; long texts make small batches."""
    for group in group_by_shape(encoded, max(len(encoded), 1)):
        most = subject.rows_at_once(encoded[group[0]])
        yield from (group[start : start + most] for start in range(0, len(group), most))


def _question(
    subject: OpenModel, order: Sequence[int], inputs: Inputs, requests: Sequence[Request]
) -> Question:
    logits = _first_look(subject, inputs, requests)
    chains = inputs.chains or ((),) * len(inputs)
    resolved = [
        resolve(TargetCase(subject, request, tokens, row, text, chain))
        for request, tokens, row, text, chain in zip(
            requests, inputs.tokens, logits, inputs.texts, chains, strict=True
        )
    ]
    notes = tuple(
        (*before, *after) for before, (_, _, after) in zip(inputs.notes, resolved, strict=True)
    )
    return Question(
        subject,
        replace(inputs, notes=notes),
        tuple(target for target, _, _ in resolved),
        tuple(prediction for _, prediction, _ in resolved),
        tuple(order),
        tuple(
            {of: float(target.score(row, of)) for of in QUANTITIES}
            for (target, _, _), row in zip(resolved, logits, strict=True)
        ),
    )


def _first_look(subject: OpenModel, inputs: Inputs, requests: Sequence[Request]) -> Logits:
    """The output from the first place where a target may be read."""
    saved = [each.target.first_place() for each in requests if isinstance(each.target, Target)]
    first = min([-max(len(inputs.chains[0]) if inputs.chains else 1, 1), *saved])
    with evaluation_mode(subject.model), torch.no_grad():
        logits = subject.run(inputs.arguments, first if subject.predicts_next else None)
    return logits.cpu()  # each row is looked at by itself


def predict_each(subject: OpenModel, texts: Sequence[Any]) -> list[tuple[str, float]]:
    """The label that the model gives each text, with its probability or value."""
    rows: list[tuple[str, float]] = [("", 0.0)] * len(texts)
    for question in ask(subject, texts, Request()):
        for index, target, prediction in question.answers():
            best = prediction[0]
            sure = best["value"] if best["probability"] is None else best["probability"]
            rows[index] = (target.name, sure)
    return rows
