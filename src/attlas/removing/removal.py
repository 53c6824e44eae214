"""Removals: the ways to remove tokens from an input, for all methods and measures."""

from collections.abc import Iterator, Sequence
from contextlib import AbstractContextManager, nullcontext
from dataclasses import replace

import torch

from attlas.catalogue import REMOVALS
from attlas.errors import UnknownNameError, UnsupportedModelError, UsageError
from attlas.models.asking.memory import rows_of
from attlas.models.asking.open_model import OpenModel
from attlas.models.asking.question import Question
from attlas.models.encoding.inputs import Inputs
from attlas.models.states.embeddings import entered_vectors
from attlas.removing import operators
from attlas.shapes import Hidden, StreamVectors

BASELINES = {
    "mask": "everything masked",
    "pad": "padding at every token",
    "zero": "every token's vector zero",
}
Place = tuple[int, int]  # a row of the inputs, and a position in it


def usual_removal(question: Question) -> str:
    """`delete`, or `mask` if positions matter (target, patches) or nothing would be left."""
    return "mask" if _why_not_delete(question) else "delete"


def _why_not_delete(question: Question) -> str | None:
    if is_tied(question.subject):
        return "the target or the patches are tied to places"
    own = 0 if question.inputs.prefix else _own(question)
    if len(question.inputs.source.positions) - own <= 1:
        return "nothing would be left of the text"
    return None


def is_tied(subject: OpenModel) -> bool:
    """Whether targets or patches are tied to places, so that no token can be deleted."""
    by_position = subject.task is not None and subject.task.by_position
    return _has_places(subject) or by_position


def _has_places(subject: OpenModel) -> bool:
    """Whether tokens are patches or frames, which stand where they are in a picture or a sound."""
    seen = subject.reads_images or bool(subject.marks) or subject.picture_argument is not None
    return seen or subject.sound_argument is not None


def _own(question: Question, row: int = 0) -> int:
    """How many tokens at the end belong to the target."""
    chains = question.inputs.chains
    return max(len(chains[row]) - 1, 0) if chains else 0


def removable(question: Question, row: int) -> list[int]:
    """The positions that may be removed: content tokens that do not belong to the target."""
    tokens = question.inputs.tokens[row]
    return [i for i in range(len(tokens) - _own(question, row)) if not tokens.special[i]]


def check_removal(subject: OpenModel, how: str) -> None:
    """Raise an error if tokens cannot be removed from this model's inputs in this way."""
    if how not in REMOVALS:
        raise UnknownNameError("removal", how, REMOVALS)
    if how == "delete" and is_tied(subject):
        raise UsageError(
            "tokens cannot be deleted here, the target or the patches are tied to places: "
            "use removal='mask'"
        )
    if how in ("delete", "mask"):
        return
    if _has_places(subject) or subject.reads_pairs:
        raise UsageError(
            f"the removal {how!r} is for texts, and {subject.name} reads pictures or sounds: "
            "use removal='mask'"
        )
    if how == "pad":
        _check_pad(subject)
    if how == "knock_out" and subject.has_decoder and not subject.predicts_next:
        raise UnsupportedModelError(
            f"tokens cannot be knocked out of {subject.name}: its decoder reads the text again, "
            "shifted by one"
        )


def _check_pad(subject: OpenModel) -> None:
    if subject.predicts_next or subject.has_decoder:
        raise UsageError(
            "padding cannot replace tokens of a text that is read at its last token or by a "
            "decoder: use removal='mask'"
        )
    if getattr(subject.tokenizer, "pad_token_id", None) is None:
        raise UsageError("this tokenizer has no token to pad with: use removal='mask'")
    if "attention_mask" not in subject.parameters:
        raise UnsupportedModelError(
            f"{subject.name} takes no attention_mask, so padding cannot be hidden: "
            "use removal='mask'"
        )


def without(
    question: Question, inputs: Inputs, hidden: Hidden, how: str
) -> AbstractContextManager[Inputs]:
    """Within the block, the model runs on these inputs without the hidden tokens of each row.

    The inputs belong to the question. `delete` needs equally many hidden tokens in each row.
    """
    if how == "zero_embedding":
        return operators.zero_embedding(question, inputs, hidden)
    if how == "knock_out":
        return operators.knock_out(question, inputs, hidden)
    change = {"delete": operators.delete, "mask": operators.mask, "pad": operators.pad}[how]
    return nullcontext(change(question, inputs, hidden))


def remove_each(
    question: Question, places: Sequence[Place], how: str
) -> Iterator[tuple[Sequence[Place], Inputs]]:
    """The inputs without each of these places in turn, in batches with one row for each place.

    The removal holds until the next batch is requested: ask about each batch before that.
    """
    check_removal(question.subject, how)
    reason = _why_not_delete(question)
    if how == "delete" and reason:
        raise UsageError(f"tokens cannot be deleted here, {reason}: use removal='mask'")
    most = _rows_at_once(question)
    for stream in question.inputs.streams():
        inside = [place for place in places if stream.start <= place[1] < stream.stop]
        for start in range(0, len(inside), most):
            chunk = inside[start : start + most]
            inputs = question.inputs.rows([row for row, _ in chunk])
            with without(question, inputs, _each(inputs, chunk), how) as changed:
                yield chunk, _recorded(changed, chunk) if how == "delete" else changed


def _recorded(inputs: Inputs, chunk: Sequence[Place]) -> Inputs:
    """The inputs with the tokens that are left recorded."""
    length = inputs.streams()[-1].stop
    tokens = tuple(
        tokens if len(tokens) == length else tokens.without(position)
        for tokens, (_, position) in zip(inputs.tokens, chunk, strict=True)
    )
    return replace(inputs, tokens=tokens)


def masked_by(
    question: Question, hidden: Hidden, rows: Sequence[int] | None = None
) -> Iterator[Question]:
    """The question with the hidden tokens of each sample masked, in batches.

    `rows` gives the row of the question that each sample comes from; by default the first.
    """
    chosen = [0] * len(hidden) if rows is None else list(rows)
    most = _rows_at_once(question)
    for start in range(0, len(hidden), most):
        part = question.rows(chosen[start : start + most])
        yield part.about(operators.mask(question, part.inputs, hidden[start : start + most]))


def mask_all(question: Question) -> Inputs:
    """The inputs with every removable token masked."""
    inputs = question.inputs
    hidden = torch.zeros(len(inputs), len(inputs.tokens[0]), dtype=torch.bool)
    for row in range(len(inputs)):
        hidden[row, removable(question, row)] = True
    return operators.mask(question, inputs, hidden)


def _rows_at_once(question: Question) -> int:
    return rows_of(question.subject.device, len(question.inputs.tokens[0]))


def _each(inputs: Inputs, chunk: Sequence[Place]) -> Hidden:
    """Hide one token in each row: that of its place."""
    positions = torch.tensor([position for _, position in chunk])
    hidden = torch.zeros(len(chunk), len(inputs.tokens[0]), dtype=torch.bool)
    return hidden.scatter_(1, positions[:, None], True)


def baseline_vectors(
    question: Question, own: Sequence[StreamVectors], name: str
) -> list[StreamVectors]:
    """The vectors of each stream with its content replaced; all other tokens keep their own.

    `own` are the real vectors. `mask` takes those of the mask token (or the nearest thing the
    tokenizer has) and of blank patches, `pad` those of the padding token, `zero` zeros.
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
        raise UsageError("this input has no padding token: use baseline='mask' or 'zero'")
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
