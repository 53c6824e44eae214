"""Pictures within a text: their patches are tokens of the text that a language model reads.

A processor puts one image token into the text for each patch, and the model puts the patch's vector
in its place. From there on, patches and words run through one stack.
"""

from collections.abc import Mapping, Sequence
from math import isqrt
from typing import Any

import numpy as np
import torch
from torch import Tensor

from attlas.data.conversations import Conversation
from attlas.errors import TextTooLongError, UnsupportedModelError, UsageError
from attlas.models.encoding.chat_parts import render
from attlas.models.encoding.encode import Encoded, encode_ids
from attlas.models.encoding.images import as_picture, as_seen, is_image
from attlas.models.encoding.request import Request
from attlas.models.facts.model_facts import GATHERERS, MASK, ModelFacts
from attlas.tokens import PICTURE, Grid, Tokens

_SUMMARIES = {"florence2": 1}  # image tokens of a picture before its patches: the mean of them
# Families whose processors put the marks of a picture into a text themselves.
_MARK_THEMSELVES = ("florence2", "blip-2", "instructblip", "kosmos-2", "idefics")
_PER_TOKEN = (
    *("attention_mask", "token_type_ids", "mm_token_type_ids"),
    *("cross_attention_mask", "image_attention_mask", MASK),
)


def has_pictures(text: Any) -> bool:
    """Whether this is a text with pictures, or what a processor made of one."""
    if isinstance(text, Mapping):
        return "input_ids" in text
    return isinstance(text, tuple) and any(map(is_image, text))


def encode_with_pictures(facts: ModelFacts, given: Any, request: Request) -> Encoded:
    """Encode a text with its pictures; each picture's patches are a segment of their own."""
    if not facts.marks:
        raise UsageError(
            f"{facts.name} has no token in its text that stands for a part of a picture or a "
            "sound, so it takes a text alone"
        )
    originals: list[Any] = []
    if isinstance(given, Mapping):
        arguments = dict(given)
    else:
        originals, text = split_pictures(given)
        arguments = processed(facts, originals, text, request)
    ids = ids_in(arguments)
    if len(ids) > facts.max_tokens:
        raise TextTooLongError(
            f"text and pictures have {len(ids)} tokens and the model takes {facts.max_tokens}"
        )
    tokens, seen = _with_patches(facts, ids, arguments, originals)
    lists = per_token(arguments, len(ids))
    beside = beside_text(facts, arguments, lists)
    if beside and {*tokens.segments} == {"text"}:
        raise UnsupportedModelError(
            f"it is not known which tokens of {facts.name} stand for {', '.join(sorted(beside))}"
        )
    lists = {"attention_mask": [1] * len(ids), **lists, "input_ids": ids}
    unplaced = sorted({*tokens.segments} - {"text", *tokens.grids})
    notes = tuple(f"the parts of {name} have no known place in it" for name in unplaced)
    if "qformer_input_ids" in beside:
        notes += ("the Q-Former reads the text too, which is a part of what its vectors hold",)
    return Encoded(tokens, lists, notes, beside=beside, pictures=seen)


def per_token(arguments: Mapping[str, Any], count: int) -> dict[str, list[Any]]:
    """The arguments of a batch of one that have an entry for each token of the text, as lists."""
    return {
        name: arguments[name][0].tolist()
        for name in _PER_TOKEN
        if name in arguments and tuple(arguments[name].shape[:2]) == (1, count)
    }


def beside_text(
    facts: ModelFacts, arguments: Mapping[str, Any], lists: Mapping[str, Any]
) -> dict[str, Tensor]:
    """The other arguments that are tensors, on the model's device and in its precision."""
    return {
        name: on_device(facts, value)
        for name, value in arguments.items()
        if name not in (*lists, "input_ids", "labels") and isinstance(value, Tensor)
    }


def split_pictures(given: Any) -> tuple[list[Any], Any]:
    """The pictures that come with a text, and the text, or the conversation that they are in."""
    if isinstance(given, Conversation):
        return given.pictures, given
    given = given if isinstance(given, tuple) else (given,)
    pictures = [each for each in given if is_image(each)]
    texts = [each for each in given if isinstance(each, str)]
    if len(texts) != 1 or len(pictures) + 1 != len(given):
        kinds = ", ".join(type(each).__name__ for each in given)
        raise UsageError(f"this model reads pictures and one text: give both, not {kinds}")
    return pictures, texts[0]


def processed(
    facts: ModelFacts, pictures: Sequence[Any], text: Any, request: Request
) -> dict[str, Any]:
    """What the processor makes of a text and its pictures."""
    processor: Any = facts.processor
    if processor is facts.tokenizer:
        raise UsageError(
            f"{facts.name} reads pictures through its processor: give that instead of the "
            f"tokenizer, or what it made ({{'input_ids': …, 'pixel_values': …}})"
        )
    shown = [as_picture(each).convert("RGB") for each in pictures]
    is_chat = request.chat or isinstance(text, Conversation)
    if is_chat:
        said = [*[{"type": "image"} for _ in shown], {"type": "text", "text": text}]
        asked = Conversation(({"role": "user", "content": said},))
        text = render(processor, text if isinstance(text, Conversation) else asked)
    elif facts.config.model_type not in _MARK_THEMSELVES:
        text = _with_marks(processor, text, len(shown))
    special = {"add_special_tokens": False} if is_chat else {}
    if facts.config.model_type == "idefics":  # takes pictures among the words, or puts them last
        return dict(processor(text=[[*shown, text]], return_tensors="pt", **special))
    found = processor(text=[text], images=[shown], return_tensors="pt", **special)
    return dict(found)


def _with_marks(processor: Any, text: str, count: int) -> str:
    """The text with a mark where each picture belongs; before the text, if it has none."""
    mark = getattr(processor, "boi_token", None) or getattr(processor, "image_token", None)
    mark = getattr(mark, "content", mark)
    marked = text.count(str(mark)) if mark else count
    if marked not in (0, count):
        raise UsageError(
            f"the text has {marked} of {mark}, which stands for a picture, and {count} came with it"
        )
    return text if marked else str(mark) * count + text


def ids_in(arguments: Mapping[str, Any]) -> list[int]:
    """The token ids of a text that is encoded already."""
    ids = arguments.get("input_ids")
    if not isinstance(ids, Tensor) or ids.ndim != 2 or len(ids) != 1:
        raise UsageError(
            "inputs that are encoded already need input_ids of one text, a tensor [1, token]"
        )
    found: list[int] = ids[0].tolist()
    return found


def on_device(facts: ModelFacts, value: Tensor) -> Tensor:
    """A tensor on the model's device, and in its precision if it has fractions."""
    return value.to(facts.device, facts.dtype if value.is_floating_point() else None)


def _with_patches(
    facts: ModelFacts, ids: Sequence[int], arguments: Mapping[str, Any], originals: Sequence[Any]
) -> tuple[Tokens, Mapping[str, np.ndarray]]:
    """The tokens of the text with the patches of each picture in their places, and the pictures."""
    places = {
        name: [place for place, number in enumerate(ids) if number == mark]
        for name, mark in facts.marks.items()
    }
    if MASK in arguments:
        places = {PICTURE: arguments[MASK][0].nonzero().flatten().tolist()}
    marked = [place for own in places.values() for place in own]
    others = sorted(set(range(len(ids))) - set(marked))
    joined = encode_ids(facts.tokenizer, [ids[place] for place in others], "text").tokens
    seen = places.get(PICTURE)
    grids = grids_of(facts, arguments, len(seen)) if seen else []
    names = [f"{PICTURE} {number + 1}" if grids[1:] else PICTURE for number in range(len(grids))]
    parts = [(name, *known) for name, known in zip(names, grids, strict=True)]
    parts += [(name, len(own), None) for name, own in places.items() if own and name != PICTURE]
    for part in parts:
        joined = joined.followed_by(_patches(*part))
    order = np.empty(len(ids), dtype=int)
    order[[*others, *marked]] = range(len(ids))
    return joined.select(order.tolist()), _pictures(facts, names, arguments, originals)


def _patches(name: str, count: int, grid: Grid | None) -> Tokens:
    """The parts of a picture; before the cells of its grid stand summaries, which are special."""
    extra = count - grid[0] * grid[1] if grid else 0
    columns = grid[1] if grid else count
    texts = [f"[{number}]" if number else "[CLS]" for number in range(extra)]
    texts += [
        f"{place // columns},{place % columns}" if grid else f"part {place}"
        for place in range(count - extra)
    ]
    special = (True,) * extra + (False,) * (count - extra)
    grids = {name: grid} if grid else {}
    return Tokens(tuple(texts), (None,) * count, special, (name,) * count, grids=grids)


def grids_of(
    facts: ModelFacts, arguments: Mapping[str, Any], count: int
) -> list[tuple[int, Grid | None]]:
    """How many of `count` image tokens belong to each picture, and their grid where known."""
    sizes = _sizes(facts, arguments)
    if sizes and sum(rows * columns for rows, columns in sizes) == count:
        return [(rows * columns, (rows, columns)) for rows, columns in sizes]
    pixels = arguments.get("pixel_values")
    number = _number_of_pictures(pixels)
    if pixels is None or count % max(number, 1):
        return [(count, None)]
    each = count // number
    cells = each - _SUMMARIES.get(facts.config.model_type, 0)
    grid = None if gathers(facts) else grid_like(cells, pixels.shape[-2], pixels.shape[-1])
    return [(each, grid)] * number


def _sizes(facts: ModelFacts, arguments: Mapping[str, Any]) -> list[Grid]:
    """The grids of the pictures, by the sizes that some processors give beside the pixels."""
    vision: Any = getattr(facts.config, "vision_config", None)
    own: Any = getattr(facts.config, "spatial_merge_size", 1)
    merge: Any = getattr(vision, "spatial_merge_size", None) or own
    if "image_grid_thw" in arguments:
        sizes = arguments["image_grid_thw"].tolist()
        merges = arguments.get("image_merge_sizes", torch.tensor([merge] * len(sizes))).tolist()
        return [(t * h // m, w // m) for (t, h, w), m in zip(sizes, merges, strict=True)]
    if "spatial_shapes" in arguments:
        factor = getattr(facts.config, "downsample_factor", 1)
        return [(-(-h // factor), -(-w // factor)) for h, w in arguments["spatial_shapes"].tolist()]
    size = getattr(vision, "patch_size", None)
    if "image_sizes" in arguments and isinstance(size, int):
        step = size * merge
        return [(h // step, w // step) for h, w in arguments["image_sizes"].tolist()]
    return []


def _number_of_pictures(pixels: Any) -> int:
    """How many pictures `[…, colour, row, column]` there are; those of zeros are filling."""
    if not isinstance(pixels, Tensor) or pixels.ndim < 4:
        return 1
    flat = pixels.flatten(0, -4)
    return max(int(flat.flatten(1).ne(0).any(dim=1).sum()), 1)


def gathers(facts: ModelFacts) -> bool:
    """Whether the model gathers a picture into vectors without a place in it."""
    names = {type(module).__name__ for module in facts.model.modules()}
    return any(word in name for name in names for word in GATHERERS)


def grid_like(count: int, height: int, width: int) -> Grid | None:
    """Rows and columns of square patches that fill a picture of this form."""
    rows = isqrt(count * height // width)
    return (rows, count // rows) if rows and rows * (count // rows) == count else None


def _pictures(
    facts: ModelFacts,
    names: Sequence[str],
    arguments: Mapping[str, Any],
    originals: Sequence[Any],
) -> Mapping[str, np.ndarray]:
    """The pictures as the model sees them, or as they were given where its pixels are patches."""
    pixels = arguments.get("pixel_values")
    if isinstance(pixels, Tensor) and pixels.ndim >= 4 and pixels.shape[-3] == 3:
        flat = pixels.flatten(0, -4)
        kept = flat[flat.flatten(1).ne(0).any(dim=1)]
        if len(kept) == len(names):
            shown = [as_seen(facts.image_processor, each) for each in kept]
            return dict(zip(names, shown, strict=True))
    if len(originals) == len(names):
        given = [np.asarray(as_picture(each).convert("RGB")) for each in originals]
        return dict(zip(names, given, strict=True))
    return {}
