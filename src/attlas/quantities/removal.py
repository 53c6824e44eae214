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
    """Delete, unless the target is tied to a position or the tokens are patches: then mask."""
    task = question.subject.task
    tied = task is not None and task.by_position
    return "mask" if tied or question.subject.reads_images else "delete"


def removable(question: Question, row: int) -> list[int]:
    """The positions that may be removed: content that is not the target's own."""
    tokens = question.inputs.tokens[row]
    chains = question.inputs.chains
    own = max(len(chains[row]) - 1, 0) if chains else 0
    return [i for i in range(len(tokens) - own) if not tokens.special[i]]


def remove_each(question: Question, positions: Sequence[int], how: str) -> Iterator[Question]:
    """The question of one row without each of these positions in turn, in batches."""
    if how not in REMOVALS:
        raise UnknownNameError("removal", how, REMOVALS)
    if how == "delete" and usual_removal(question) == "mask":
        raise UsageError("tokens cannot be deleted here, the target or the patches are tied to places: use 'mask'")
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
    shorter = {
        id(each): replace(each, start=each.start - (each.start > stream.start), stop=each.stop - 1)
        if each.start >= stream.start
        else each
        for each in inputs.streams()
    }
    tokens = tuple(
        tokens.select([i for i in range(len(tokens)) if i != stream.start + place])
        for tokens, place in zip(inputs.tokens, places, strict=True)
    )
    return replace(
        inputs,
        arguments=arguments,
        tokens=tokens,
        source=shorter[id(inputs.source)],
        prefix=inputs.prefix and shorter[id(inputs.prefix)],
    )


def _mask(question: Question, inputs: Inputs, stream: Stream, places: Sequence[int]) -> Inputs:
    """Row r of the batch with place r of a stream masked."""
    value = inputs.arguments[stream.argument].clone()
    if question.subject.reads_images:
        for row, place in enumerate(places):
            _blank(value[row], inputs, place)
    else:
        rows = torch.arange(len(places), device=value.device)
        value[rows, torch.tensor(list(places), device=value.device)] = mask_id(question.subject.tokenizer)
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
