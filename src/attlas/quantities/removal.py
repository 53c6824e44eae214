"""Removing tokens from an input: what "without this token" means, named once for everyone."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import torch
from torch import Tensor

from attlas.errors import UnknownNameError, UsageError
from attlas.models.inputs import Inputs, Stream
from attlas.models.memory import rows_of
from attlas.models.question import Question
from attlas.models.subject import Subject
from attlas.shapes import Hidden

REMOVALS = ("delete", "mask")
Place = tuple[int, int]  # a row of the inputs, and a position in it


def usual_removal(question: Question) -> str:
    """Delete; mask where places count (a target tied to one, patches), or nothing would be left."""
    return "mask" if _why_not_delete(question) else "delete"


def _why_not_delete(question: Question) -> str | None:
    task = question.subject.task
    if question.subject.reads_images or (task is not None and task.by_position):
        return "the target or the patches are tied to places"
    own = 0 if question.inputs.prefix else _own(question)
    if len(question.inputs.source.positions) - own <= 1:
        return "nothing would be left of the text"
    return None


def _own(question: Question, row: int = 0) -> int:
    """How many of the last tokens are the target's own."""
    chains = question.inputs.chains
    return max(len(chains[row]) - 1, 0) if chains else 0


def removable(question: Question, row: int) -> list[int]:
    """The positions that may be removed: content that is not the target's own."""
    tokens = question.inputs.tokens[row]
    return [i for i in range(len(tokens) - _own(question, row)) if not tokens.special[i]]


def remove_each(
    question: Question, places: Sequence[Place], how: str
) -> Iterator[tuple[Sequence[Place], Inputs]]:
    """The inputs without each of these places in turn, in batches, a row for each place."""
    if how not in REMOVALS:
        raise UnknownNameError("removal", how, REMOVALS)
    reason = _why_not_delete(question)
    if how == "delete" and reason:
        raise UsageError(f"tokens cannot be deleted here, {reason}: use removal='mask'")
    most = _rows_at_once(question)
    for stream in question.inputs.streams():
        inside = [place for place in places if stream.start <= place[1] < stream.stop]
        for start in range(0, len(inside), most):
            chunk = inside[start : start + most]
            inputs = question.inputs.rows([row for row, _ in chunk])
            within = [position - stream.start for _, position in chunk]
            if how == "delete" and inputs.arguments[stream.argument].ndim == 2:
                yield chunk, _delete(inputs, stream, within)
            else:
                yield chunk, _mask(question, inputs, _each(inputs, chunk))


def masked_by(
    question: Question, hidden: Hidden, rows: Sequence[int] | None = None
) -> Iterator[Question]:
    """The question with, in each sample, the hidden tokens masked; in batches.

    `rows` says which row of the question each sample is of: the first if not given.
    """
    chosen = [0] * len(hidden) if rows is None else list(rows)
    most = _rows_at_once(question)
    for start in range(0, len(hidden), most):
        part = question.rows(chosen[start : start + most])
        yield part.about(_mask(question, part.inputs, hidden[start : start + most]))


def mask_all(question: Question) -> Inputs:
    """The inputs with every token masked that may be removed."""
    inputs = question.inputs
    hidden = torch.zeros(len(inputs), len(inputs.tokens[0]), dtype=torch.bool)
    for row in range(len(inputs)):
        hidden[row, removable(question, row)] = True
    return _mask(question, inputs, hidden)


def _rows_at_once(question: Question) -> int:
    return rows_of(question.subject.device, len(question.inputs.tokens[0]))


def _each(inputs: Inputs, chunk: Sequence[Place]) -> Hidden:
    """In row r, the one token of place r."""
    positions = torch.tensor([position for _, position in chunk])
    hidden = torch.zeros(len(chunk), len(inputs.tokens[0]), dtype=torch.bool)
    return hidden.scatter_(1, positions[:, None], True)


def _delete(inputs: Inputs, stream: Stream, places: Sequence[int]) -> Inputs:
    """Row r of the batch without place r of a stream."""
    length = stream.stop - stream.start
    keep = torch.arange(length - 1).repeat(len(places), 1)
    keep += keep >= torch.tensor(list(places))[:, None]
    names = inputs.companions(stream)
    arguments = {
        name: value.gather(1, keep.to(value.device)) if name in names else value
        for name, value in inputs.arguments.items()
    }
    tokens = tuple(
        tokens.without(stream.start + place)
        for tokens, place in zip(inputs.tokens, places, strict=True)
    )
    return replace(
        inputs,
        arguments=arguments,
        tokens=tokens,
        source=_shorter(inputs.source, stream),
        prefix=inputs.prefix and _shorter(inputs.prefix, stream),
    )


def _shorter(stream: Stream, cut: Stream) -> Stream:
    """Where a stream is once a token of `cut` is gone."""
    if stream.start < cut.start:
        return stream
    moved = stream.start - (stream.start > cut.start)
    return replace(stream, start=moved, stop=stream.stop - 1)


def _mask(question: Question, inputs: Inputs, hidden: Hidden) -> Inputs:
    """The inputs with the hidden tokens of each row masked."""
    changed = {}
    for stream in inputs.streams():
        value, own = inputs.arguments[stream.argument], hidden[:, stream.start : stream.stop]
        if not own.any():
            continue
        if value.ndim == 4:
            changed[stream.argument] = _blank(value, inputs, own)
        elif value.ndim == 3:  # objects, by their features
            changed[stream.argument] = value.masked_fill(own.to(value.device)[..., None], 0)
        else:
            nothing = mask_id(question.subject)
            changed[stream.argument] = value.masked_fill(own.to(value.device), nothing)
    return replace(inputs, arguments={**inputs.arguments, **changed})


def mask_id(subject: Subject) -> int:
    """The token that stands for nothing: mask, else pad, else unknown, else end of text."""
    names = ("mask_token_id", "pad_token_id", "unk_token_id", "eos_token_id")
    found = [getattr(subject.tokenizer, name, None) for name in names]
    number = next((each for each in found if each is not None), None)
    if number is None:
        raise UsageError("this tokenizer has no token to mask with: use removal='delete'")
    if subject.reads_pairs and number == subject.tokenizer.eos_token_id:
        raise UsageError(
            "this tokenizer has no token to mask with but the one that ends a text, and the text "
            "would be read there"
        )
    return int(number)


def _blank(pixels: Tensor, inputs: Inputs, hidden: Hidden) -> Tensor:
    """The pictures with the hidden patches in the mean colour, which is zero once normalised."""
    rows, columns = inputs.tokens[0].grid or (1, 1)
    patches = hidden[:, -rows * columns :].unflatten(1, (rows, columns)).to(pixels.device)
    height, width = pixels.shape[-2] // rows, pixels.shape[-1] // columns
    covered = patches.repeat_interleave(height, 1).repeat_interleave(width, 2)
    rest = (0, pixels.shape[-1] - covered.shape[2], 0, pixels.shape[-2] - covered.shape[1])
    return pixels.masked_fill(torch.nn.functional.pad(covered, rest)[:, None], 0)
