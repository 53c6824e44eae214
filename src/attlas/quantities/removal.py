"""Removing tokens from an input: what "without this token" means, named once for everyone."""

from collections.abc import Iterator, Sequence
from dataclasses import replace
from typing import Any

import torch

from attlas.errors import UnknownNameError, UsageError
from attlas.models.inputs import Inputs, Stream
from attlas.models.question import Question

REMOVALS = ("delete", "mask")
TOKENS_AT_ONCE = 2**14


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


def remove_each(question: Question, positions: Sequence[int], how: str) -> Iterator[Question]:
    """The question of one row without each of these positions in turn, in batches."""
    if how not in REMOVALS:
        raise UnknownNameError("removal", how, REMOVALS)
    reason = _why_not_delete(question)
    if how == "delete" and reason:
        raise UsageError(f"tokens cannot be deleted here, {reason}: use removal='mask'")
    remove = _delete if how == "delete" else _mask
    most = max(1, TOKENS_AT_ONCE // len(question.inputs.tokens[0]))
    for stream in question.inputs.streams():
        inside = [i - stream.start for i in positions if stream.start <= i < stream.stop]
        for start in range(0, len(inside), most):
            chunk = inside[start : start + most]
            repeated = question.rows([0] * len(chunk))
            yield repeated.about(remove(question, repeated.inputs, stream, chunk))


def _delete(_: Question, inputs: Inputs, stream: Stream, places: Sequence[int]) -> Inputs:
    """Row r of the batch without place r of a stream."""
    length = stream.stop - stream.start
    keep = torch.tensor([[i for i in range(length) if i != place] for place in places])
    names = inputs.companions(stream)
    arguments = {
        name: value.gather(1, keep.to(value.device)) if name in names else value
        for name, value in inputs.arguments.items()
    }
    tokens = tuple(
        tokens.select([i for i in range(len(tokens)) if i != stream.start + place])
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


def _mask(question: Question, inputs: Inputs, stream: Stream, places: Sequence[int]) -> Inputs:
    """Row r of the batch with place r of a stream masked."""
    value = inputs.arguments[stream.argument].clone()
    if question.subject.reads_images:
        for row, place in enumerate(places):
            _blank(value[row], inputs, place)
    else:
        rows = torch.arange(len(places), device=value.device)
        value[rows, torch.tensor(list(places), device=value.device)] = mask_id(
            question.subject.tokenizer
        )
    return replace(inputs, arguments={**inputs.arguments, stream.argument: value})


def mask_id(tokenizer: Any) -> int:
    """The token that stands for nothing: mask, else pad, else unknown, else end of text."""
    names = ("mask_token_id", "pad_token_id", "unk_token_id", "eos_token_id")
    found = [getattr(tokenizer, name, None) for name in names]
    number = next((each for each in found if each is not None), None)
    if number is None:
        raise UsageError("this tokenizer has no token to mask with: use removal='delete'")
    return int(number)


def _blank(pixels: torch.Tensor, inputs: Inputs, place: int) -> None:
    tokens = inputs.tokens[0]
    rows, columns = tokens.grid or (1, 1)
    patch = place - sum(tokens.special)
    height, width = pixels.shape[-2] // rows, pixels.shape[-1] // columns
    top, left = patch // columns * height, patch % columns * width
    pixels[..., top : top + height, left : left + width] = 0  # the mean colour, once normalised
