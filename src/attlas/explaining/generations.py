"""The verb `explain_generation`: every token that a model wrote, explained by all before it."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch

from attlas.errors import ModelError, UsageError
from attlas.explaining.order import (
    DEFAULT_METHOD,
    Order,
    check_subject,
    origin,
    target_record,
    too_large,
)
from attlas.methods import METHODS, Scored
from attlas.models.asking.memory import in_parts
from attlas.models.asking.scores import visible_tokens
from attlas.models.asking.writing import Written, ask_written
from attlas.models.encoding.request import Request
from attlas.models.encoding.text_inputs import encode_plain
from attlas.models.subject import Subject
from attlas.results import Generation
from attlas.results.support.sinks import sink_notes

DEFAULT_LENGTH = 20


def explain_generation(
    subject: Subject,
    text: Any,
    method: str = DEFAULT_METHOD,
    *,
    max_new_tokens: int = DEFAULT_LENGTH,
    output: str | None = None,
    chat: bool = False,
    truncate: bool = False,
    **options: Any,
) -> Generation:
    """Explain every token that the model writes: a matrix, output × input.

    A row says what one token owes to the prompt and to what was written before it; for an
    encoder–decoder, to the source and to what was written before it. The model writes up to
    `max_new_tokens` tokens greedily, unless an `output` is given to be explained instead. The model
    runs once over the finished text where the method allows it. `options` are the method's own.
    """
    check_subject(subject, "explain_generation")
    if not subject.predicts_next:
        task = subject.task.name if subject.task else "no head"
        raise UsageError(f"only a model that writes can be asked what it writes, not {task}")
    if max_new_tokens < 1:
        raise UsageError(f"max_new_tokens is at least 1, not {max_new_tokens}")
    order = Order(METHODS[method], Request(chat=chat, truncate=truncate), options)
    with torch.inference_mode(False):
        found = encode_plain(subject, text, order.request)
        written = ask_written(subject, found, text, output, max_new_tokens)
        scored = list(_score(written, order))
    asked = {"text": text, "max_new_tokens": max_new_tokens, "output": output}
    return _record(order, written, scored, asked)


def _score(written: Written, order: Order) -> Iterator[Scored]:
    """The scores of all rows over all tokens, part by part."""
    question, method = written.question, order.method
    width = len(question.inputs.tokens[0])

    def score(rows: Sequence[int]) -> Scored:
        part = question.rows(rows) if method.many_targets else written.alone(rows[0])
        scored = method.score(part, order.options)
        scores = scored.scores.float().where(visible_tokens(part), 0).cpu()
        return replace(scored, scores=torch.nn.functional.pad(scores, (0, width - scores.shape[1])))

    count = len(question)
    most = count if method.many_targets else 1
    for start in range(0, count, most):
        rows = range(start, min(start + most, count))
        yield from in_parts(rows, score, too_large(method, question))


def _record(
    order: Order, written: Written, scored: Sequence[Scored], asked: dict[str, Any]
) -> Generation:
    question = written.question
    scores = torch.cat([each.scores for each in scored])
    if not torch.isfinite(scores).all():
        name = question.subject.name
        raise ModelError(f"{order.method.name} gave scores that are not finite for {name}")
    rows = range(len(question))
    notes = dict.fromkeys(note for each in scored for note in each.notes)
    found = Generation(
        written.tokens,
        torch.nn.functional.pad(scores, (0, 1)).numpy(),  # nothing depends on the last token
        written.outputs,
        tuple(target_record(question, row, order.method) for row in rows),
        origin(order, question.subject, asked, "explain_generation"),
        (*question.inputs.notes[0], *notes),
        question.predictions,
        row_notes=tuple(note for each in scored for note in each.row_notes),
    )
    return replace(found, notes=(*found.notes, *sink_notes(found.tokens, found.sinks)))
