"""Operators: how the hidden tokens of each row are removed from a batch."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from attlas.errors import UnsupportedModelError, UsageError
from attlas.models.asking.open_model import OpenModel
from attlas.models.asking.question import Question
from attlas.models.encoding.inputs import Inputs, Stream
from attlas.models.encoding.pictures_across import hidden_cells
from attlas.models.encoding.pictures_in_text import grids_of
from attlas.models.encoding.sounds import silence
from attlas.models.states.embeddings import entered_vectors, entering
from attlas.models.states.entrance import SOUNDS
from attlas.models.tap.edits import Edit
from attlas.shapes import Attention, Hidden, Visible
from attlas.tokens import PICTURE, Grid


def cut(inputs: Inputs, gone: Hidden) -> Inputs:
    """The batch without the tokens marked as gone; each row must lose equally many.

    `tokens` still records the whole texts.
    """
    arguments = dict(inputs.arguments)
    for stream in _of_ids(inputs):
        kept = (~_own(gone, stream)).nonzero()[:, 1].view(len(gone), -1)
        if not kept.shape[1]:
            raise UsageError("tokens cannot be deleted here, nothing would be left of the text")
        for name in inputs.companions(stream):
            value = arguments[name]
            arguments[name] = value.gather(1, kept.to(value.device))
    return _with_lengths(replace(inputs, arguments=arguments))


def _of_ids(inputs: Inputs) -> list[Stream]:
    """The streams of token ids, which can be cut."""
    return [each for each in inputs.streams() if inputs.arguments[each.argument].ndim == 2]


def _own(hidden: Hidden, stream: Stream) -> Tensor:
    return hidden[:, stream.start : stream.stop]


def _with_lengths(inputs: Inputs) -> Inputs:
    """The inputs with streams at their new positions, by the lengths of their arguments."""
    moved: dict[str, Stream] = {}
    start = 0
    for stream in inputs.streams():
        value = inputs.arguments[stream.argument]
        length = value.shape[1] if value.ndim == 2 else stream.stop - stream.start
        moved[stream.argument] = replace(stream, start=start, stop=start + length)
        start += length
    return replace(
        inputs,
        source=moved[inputs.source.argument],
        prefix=inputs.prefix and moved[inputs.prefix.argument],
        picture=inputs.picture and moved[inputs.picture.argument],
    )


def delete(question: Question, inputs: Inputs, hidden: Hidden) -> Inputs:
    """The batch without the hidden tokens; patches and objects are masked instead."""
    numbered = torch.zeros(hidden.shape[1], dtype=torch.bool)
    for stream in _of_ids(inputs):
        numbered[stream.start : stream.stop] = True
    blanked = mask(question, inputs, hidden & ~numbered)
    return cut(blanked, hidden & numbered)


def mask(question: Question, inputs: Inputs, hidden: Hidden) -> Inputs:
    """The batch with the hidden tokens masked: the mask token, grey patches, objects of zeros."""
    changed = {}
    for stream in inputs.streams():
        value, own = inputs.arguments[stream.argument], _own(hidden, stream)
        if not own.any():
            continue
        if stream.argument in SOUNDS:
            changed[stream.argument] = silence(question.subject, inputs, own)
        elif question.subject.picture_argument is not None and stream is inputs.source:
            cells = hidden_cells(question.subject, inputs, own)
            grids = list(inputs.tokens[0].grids.values())
            changed[stream.argument] = _blank_cells(value, cells, grids, 1)
        elif value.ndim == 4:
            changed[stream.argument] = _blank(value, inputs, own)
        elif value.ndim == 3:  # objects, by their features
            changed[stream.argument] = value.masked_fill(own.to(value.device)[..., None], 0)
        else:
            changed |= _mask_words(question.subject, inputs, stream, own)
    return replace(inputs, arguments={**inputs.arguments, **changed})


def _mask_words(
    subject: OpenModel, inputs: Inputs, stream: Stream, hidden: Hidden
) -> dict[str, Tensor]:
    """The ids of a stream with the mask token for hidden ones; patches among them become grey."""
    ids = inputs.arguments[stream.argument]
    hidden = hidden.to(ids.device)
    if not subject.marks:
        return {stream.argument: ids.masked_fill(hidden, mask_id(subject))}
    seen = _are_patches(inputs, stream).to(ids.device)
    changed = {}
    others = [number for name, number in subject.marks.items() if name != PICTURE]
    if (hidden & torch.isin(ids, ids.new_tensor(others))).any():
        raise UnsupportedModelError(
            f"parts of a sound or a film cannot be masked in the text of {subject.name}"
        )
    if (hidden & seen).any():
        patches = hidden[seen].view(len(ids), -1)
        changed["pixel_values"] = blank_patches(subject, inputs.arguments, patches)
    if (hidden & ~seen).any():
        changed[stream.argument] = ids.masked_fill(hidden & ~seen, mask_id(subject))
    return changed


def _are_patches(inputs: Inputs, stream: Stream) -> Tensor:
    """Which tokens of a stream are parts of a picture within the text, `[row, token]`."""
    names = [tokens.segments[stream.start : stream.stop] for tokens in inputs.tokens]
    return torch.tensor([[name.split()[0] == PICTURE for name in row] for row in names])


def mask_id(subject: OpenModel) -> int:
    """The token to mask with: mask, else padding, else unknown, else end of text."""
    number = mask_token(subject.tokenizer, subject.image_token)
    if subject.reads_pairs and number == subject.tokenizer.eos_token_id:
        raise UsageError(
            "this tokenizer can only mask with its end-of-text token, and this model reads "
            "the text there"
        )
    return number


def mask_token(tokenizer: Any, never: int | None = None) -> int:
    """The token of a tokenizer to mask with, but not this one."""
    names = ("mask_token_id", "pad_token_id", "unk_token_id", "eos_token_id")
    found = [getattr(tokenizer, name, None) for name in names]
    number = next((each for each in found if each not in (None, never)), None)
    if number is None:
        raise UsageError("this tokenizer has no token to mask with: use removal='delete'")
    return int(number)


def _blank(pixels: Tensor, inputs: Inputs, hidden: Hidden) -> Tensor:
    """The pictures with hidden patches in the mean colour, which is zero after normalisation."""
    rows, columns = inputs.tokens[0].grids["image"]
    patches = hidden[:, -rows * columns :].unflatten(1, (rows, columns)).to(pixels.device)
    height, width = pixels.shape[-2] // rows, pixels.shape[-1] // columns
    covered = patches.repeat_interleave(height, 1).repeat_interleave(width, 2)
    rest = (0, pixels.shape[-1] - covered.shape[2], 0, pixels.shape[-2] - covered.shape[1])
    return pixels.masked_fill(torch.nn.functional.pad(covered, rest)[:, None], 0)


def blank_patches(facts: OpenModel, arguments: Mapping[str, Tensor], hidden: Tensor) -> Tensor:
    """The pixels of a batch with hidden patches in the mean colour, zero after normalisation.

    `hidden` marks image tokens, `[row, image token]`, in the order of the text.
    """
    pixels, rows = arguments.get("pixel_values"), len(hidden)
    each = {name: value[: len(value) // rows] for name, value in arguments.items()}
    known = grids_of(facts, each, hidden.shape[1])
    grids = [grid for _, grid in known if grid]
    in_rows = "image_grid_thw" in arguments
    if pixels is None or not grids or pixels.ndim != (2 if in_rows else max(pixels.ndim, 4)):
        raise UnsupportedModelError(
            f"patches cannot be masked in {facts.name}: it is not known which of its pixels make "
            "an image token"
        )
    if in_rows:
        return _blank_rows(facts, pixels, hidden)
    parts = zip(hidden.split([count for count, _ in known], dim=1), grids, strict=True)
    cells = torch.cat([own[:, -rows * columns :] for own, (rows, columns) in parts], dim=1)
    return _blank_cells(pixels, cells, grids, getattr(facts.config.vision_config, "patch_size", 1))


def _blank_rows(facts: OpenModel, pixels: Tensor, hidden: Tensor) -> Tensor:
    """Pixels `[patch, value]`, of which equally many in a row belong to each image token."""
    count = hidden.numel()
    if len(pixels) % count:
        raise UnsupportedModelError(
            f"patches cannot be masked in {facts.name}: {len(pixels)} patches make {count} tokens"
        )
    own = hidden.flatten().repeat_interleave(len(pixels) // count)
    return pixels.masked_fill(own.to(pixels.device)[:, None], 0)


def _blank_cells(pixels: Tensor, hidden: Tensor, grids: Sequence[Grid], size: Any) -> Tensor:
    """Pixels `[…, colour, row, column]`; `size` is the side of the patches that make a cell."""
    unit = size if isinstance(size, int) else 1
    flat = pixels.flatten(0, -4).clone()
    kept = flat.flatten(1).ne(0).any(dim=1).nonzero().flatten().tolist()
    counts = [rows * columns for rows, columns in grids] * len(hidden)
    for number, own, (rows, columns) in zip(
        kept, hidden.flatten().split(counts), list(grids) * len(hidden), strict=True
    ):
        high, wide = flat.shape[-2] // rows // unit * unit, flat.shape[-1] // columns // unit * unit
        cover = own.view(rows, columns).repeat_interleave(high, 0).repeat_interleave(wide, 1)
        part = flat[number, :, : rows * high, : columns * wide]
        part.masked_fill_(cover.to(flat.device), 0)
    return flat.reshape(pixels.shape)


def pad(question: Question, inputs: Inputs, hidden: Hidden) -> Inputs:
    """The batch with padding instead of the hidden tokens; no other token attends to it."""
    ids = inputs.arguments["input_ids"]
    own, marks = hidden.to(ids.device), inputs.arguments.get("attention_mask")
    seen = torch.ones_like(ids) if marks is None else marks
    changed = {
        "input_ids": ids.masked_fill(own, question.subject.tokenizer.pad_token_id),
        "attention_mask": seen.masked_fill(own, 0),
    }
    return replace(inputs, arguments={**inputs.arguments, **changed})


@contextmanager
def zero_embedding(question: Question, inputs: Inputs, hidden: Hidden) -> Iterator[Inputs]:
    """Within the block, the word vectors of the hidden tokens are zeros.

    The model still adds to them what it always adds, such as a vector for the position.
    """
    whole = entered_vectors(question.about(inputs))
    values = [
        vectors.masked_fill(_own(hidden, stream).to(vectors.device)[..., None], 0)
        for vectors, stream in zip(whole, inputs.streams(), strict=True)
    ]
    with entering(question.subject, inputs, values):
        yield inputs


@contextmanager
def knock_out(question: Question, inputs: Inputs, hidden: Hidden) -> Iterator[Inputs]:
    """Within the block, no other token attends to a hidden one, in any layer or head."""
    with question.subject.tap(closings(question.subject, inputs, hidden), sites=()):
        yield inputs


def closings(subject: OpenModel, inputs: Inputs, hidden: Hidden) -> Sequence[Edit]:
    """Edits, one for each kind of site, that take all attention from the hidden tokens."""
    edits = []
    for kind in dict.fromkeys(site.kind for site in subject.sites):
        queries, keys = inputs.queries_and_keys(kind)
        edits.append(close(_own(hidden, keys), to_itself=queries != keys).at(kind=kind))
    return edits


def close(keys: Hidden, to_itself: bool) -> Edit:
    """Take all weight from these keys of each row and divide it among the other keys.

    A key keeps the weight of its own query, unless `to_itself` is set.
    """

    def change(weights: Attention, visible: Visible) -> Attention:
        if len(weights) != len(keys) or weights.shape[-1] != keys.shape[1]:
            raise UnsupportedModelError(
                f"tokens cannot be knocked out: an attention is over {weights.shape[-1]} keys in "
                f"{len(weights)} rows, and the text has {keys.shape[1]} tokens in {len(keys)}"
            )
        closed = keys.to(weights.device)[:, None, None, :]
        if not to_itself:
            others = ~torch.eye(keys.shape[1], dtype=torch.bool, device=weights.device)
            closed = closed & others
        rest = weights.masked_fill(closed, 0)
        left, total = (each.sum(dim=-1, keepdim=True) for each in (rest, weights))
        return torch.where(left > 0, rest * total / left.clamp_min(1e-38), rest)

    return Edit("close", change)
