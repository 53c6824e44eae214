"""From texts to Questions: encode each, group those of equal length, find out what is explained."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import torch

from attlas.errors import UsageError
from attlas.models.asking.memory import in_parts
from attlas.models.asking.question import Question
from attlas.models.asking.resolve import Case, Request, resolve
from attlas.models.encoding.continuations import as_inputs, with_chain, with_prefix
from attlas.models.encoding.encode import Encoded, encode
from attlas.models.encoding.inputs import Inputs, group_by_shape, stack
from attlas.models.encoding.target import QUANTITIES, Target
from attlas.models.facts.freezing import borrowed
from attlas.shapes import Logits

if TYPE_CHECKING:
    from attlas.models.subject import Subject

SEGMENTS = ("text", "text_a", "text_b")


def ask(subject: "Subject", texts: Sequence[Any], request: Request) -> list[Question]:
    """Questions about these texts, those of equal length together."""
    encoded = [subject.encode(text, request) for text in texts]

    def question(order: Sequence[int]) -> Question:
        return _question(subject, order, stack([encoded[i] for i in order]), request)

    return [
        part
        for group in _groups(subject, encoded)
        for part in in_parts(group, question, _too_large(subject, encoded[group[0]]))
    ]


def _too_large(subject: "Subject", inputs: Inputs) -> str:
    count = len(inputs.tokens[0])
    return f"{subject.name} on {subject.device} cannot take one text of {count} tokens"


def _groups(subject: "Subject", encoded: Sequence[Inputs]) -> Iterator[list[int]]:
    """Which texts share a batch; the longer they are, the fewer."""
    for group in group_by_shape(encoded, max(len(encoded), 1)):
        most = subject.rows_at_once(encoded[group[0]])
        yield from (group[start : start + most] for start in range(0, len(group), most))


def _question(
    subject: "Subject", order: Sequence[int], inputs: Inputs, request: Request
) -> Question:
    logits = _first_look(subject, inputs, request)
    chains = inputs.chains or ((),) * len(inputs)
    resolved = [
        resolve(Case(subject, request, tokens, row, chain))
        for tokens, row, chain in zip(inputs.tokens, logits, chains, strict=True)
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


def _first_look(subject: "Subject", inputs: Inputs, request: Request) -> Logits:
    """The output from the first place that a target may be read at."""
    first = -max(len(inputs.chains[0]) if inputs.chains else 1, 1)
    if isinstance(request.target, Target):
        first = min(first, request.target.first_place())
    with borrowed(subject.model), torch.no_grad():
        return subject.run(inputs.arguments, first if subject.predicts_next else None)


def encode_text(subject: "Subject", text: Any, request: Request) -> Inputs:
    """One text as a batch of one, with what the decoder has written or the target's own tokens."""
    name = subject.task.name if subject.task else ""
    found = encode_plain(subject, text, request)
    if name == "causal lm":
        return with_chain(subject, found, text, request)
    if name == "sequence to sequence" or (not name and subject.has_decoder):
        return with_prefix(subject, found, text, request)
    return as_inputs(subject, found, text)


def encode_plain(subject: "Subject", text: Any, request: Request) -> Encoded:
    """One text with its special tokens, and nothing behind it."""
    name = subject.task.name if subject.task else ""
    given = _as_chat(subject.tokenizer, text) if request.chat else text
    names = ("text", "question", "context") if name == "question answering" else SEGMENTS
    if name == "question answering" and not isinstance(given, tuple):
        raise UsageError("this model answers questions: give a pair, (question, context)")
    limit = subject.max_tokens
    return encode(subject.tokenizer, given, names, limit, request.truncate, plain=request.chat)


def _as_chat(tokenizer: Any, text: Any) -> str:
    if not isinstance(text, str):
        raise UsageError(f"a chat message is a string, not {type(text).__name__}")
    if not getattr(tokenizer, "chat_template", None):
        raise UsageError("this tokenizer has no chat template")
    message = [{"role": "user", "content": text}]
    written: str = tokenizer.apply_chat_template(
        message, tokenize=False, add_generation_prompt=True
    )
    return written
