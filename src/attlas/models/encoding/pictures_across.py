"""Pictures that a text is written about, where cross-attention reads them from another stack.

The picture is the source of such a model, as the text is that of a translator: its parts are the
keys of the cross-attention. What the model reads and writes is the prefix.
"""

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor

from attlas.errors import UnsupportedModelError, UsageError
from attlas.models.encoding.encode import Encoded, encode_ids
from attlas.models.encoding.images import as_seen
from attlas.models.encoding.inputs import Inputs
from attlas.models.encoding.pictures_in_text import (
    beside_text,
    gathers,
    grid_like,
    ids_in,
    on_device,
    per_token,
    processed,
    split_pictures,
)
from attlas.models.encoding.request import Request
from attlas.models.facts.model_facts import ModelFacts
from attlas.models.tap.folding import fold_calls
from attlas.tokens import PICTURE, Tokens

FILLING = "filling"  # the segment of tiles that are not there
MOST_SUMMARIES = 8  # vectors of a picture that stand before its patches, such as [CLS]


def encode_across(facts: ModelFacts, given: Any, request: Request) -> Encoded:
    """Encode a text and the pictures that it is about."""
    arguments = dict(given) if isinstance(given, Mapping) else _read(facts, given, request)
    name, ids = str(facts.picture_argument), ids_in(arguments)
    if not isinstance(arguments.get(name), Tensor):
        raise UsageError(f"{facts.name} writes about pictures: what is encoded needs {name}")
    words = per_token(arguments, len(ids))
    beside = beside_text(facts, arguments, words)
    text = encode_ids(facts.tokenizer, ids, "text")
    lists = {**text.arguments, **words}
    whole = {**{key: torch.tensor([value]) for key, value in lists.items()}, **beside}
    tokens, seen = _parts(facts, whole, _count_keys(facts, whole))
    unplaced = sorted({*tokens.segments} - {*tokens.grids, FILLING})
    notes = tuple(f"the parts of {each} have no known place in it" for each in unplaced)
    return replace(text, arguments=lists, notes=notes, beside=beside, pictures=seen, before=tokens)


def _read(facts: ModelFacts, given: Any, request: Request) -> dict[str, Any]:
    """What the processor makes of pictures and the text beside them."""
    pictures, text = split_pictures(given)
    if not pictures:
        raise UsageError(f"{facts.name} reads pictures with a text: give both, as (picture, text)")
    return processed(facts, pictures, text, request)


def _count_keys(facts: ModelFacts, arguments: Mapping[str, Tensor]) -> int:
    """How many vectors of the picture the first cross-attention reads."""
    given = {key: on_device(facts, each) for key, each in arguments.items()}
    kinds = fold_calls(facts.model, lambda call: (call.path, call.site.kind, call.weights.shape))
    with kinds as calls, torch.no_grad():
        try:
            facts.model(**{key: each for key, each in given.items() if key in facts.parameters})
        except (TypeError, AttributeError, RuntimeError) as problem:
            raise UnsupportedModelError.of_failure(facts.model, problem) from problem
    found = [shape for path, kind, shape in calls if kind == "cross" and facts.writes_at(path)]
    if not found:
        raise UnsupportedModelError(
            f"{type(facts.model).__name__} cannot be explained: what it sees is no part of the "
            "text that it reads, and no cross-attention reads it"
        )
    return int(found[0][-1])


def _parts(
    facts: ModelFacts, arguments: Mapping[str, Tensor], count: int
) -> tuple[Tokens, dict[str, Any]]:
    """The parts of all pictures (or of the tiles of one) as tokens, and the pictures."""
    pixels = arguments[str(facts.picture_argument)]
    shown = pixels.flatten(0, -4) if pixels.ndim >= 4 else pixels
    number = len(shown) if pixels.ndim >= 4 and count % len(shown) == 0 else 1
    is_filled = [number == 1 or bool(each.ne(0).any()) for each in shown[:number]]
    names = _names(is_filled)
    joined, seen = Tokens((), (), (), ()), {}
    for name, filled, own in zip(names, is_filled, shown, strict=False):
        each = _of_one(facts, name, own, count // number, filled)
        joined = joined.followed_by(each)
        if filled and pixels.ndim >= 4 and pixels.shape[-3] == 3:
            seen[name] = as_seen(facts.image_processor, own)
    return joined, seen


def _names(is_filled: Sequence[bool]) -> list[str]:
    """The segment of each picture; tiles of zeros fill up the place of one that is not there."""
    if len(is_filled) == 1:
        return [PICTURE]
    numbers = iter(range(1, len(is_filled) + 1))
    several = sum(is_filled) > 1
    return [
        (f"{PICTURE} {next(numbers)}" if several else PICTURE) if filled else FILLING
        for filled in is_filled
    ]


def _of_one(facts: ModelFacts, name: str, pixels: Tensor, count: int, filled: bool) -> Tokens:
    """The parts of one picture: summaries first, then patches, in their places where known."""
    if not filled:
        return _tokens(name, [f"[{place}]" for place in range(count)], special=count)
    tries = range(0 if pixels.ndim < 3 or gathers(facts) else MOST_SUMMARIES)
    for extra in tries:
        grid = grid_like(count - extra, pixels.shape[-2], pixels.shape[-1])
        if grid and grid[0] * grid[1] == count - extra:
            first = [f"[{place}]" if place else "[CLS]" for place in range(extra)]
            cells = [f"{row},{column}" for row in range(grid[0]) for column in range(grid[1])]
            return _tokens(name, [*first, *cells], extra, {name: grid})
    return _tokens(name, [f"part {place}" for place in range(count)], 0)


def _tokens(name: str, texts: Sequence[str], special: int, grids: Any = None) -> Tokens:
    count = len(texts)
    marks = (True,) * special + (False,) * (count - special)
    return Tokens(tuple(texts), (None,) * count, marks, (name,) * count, grids=grids or {})


def hidden_cells(facts: ModelFacts, inputs: Inputs, hidden: Tensor) -> Tensor:
    """Which patches of the pictures are hidden, `[row, patch]`; raises if parts have no place."""
    pixels, tokens = inputs.arguments[inputs.source.argument], inputs.tokens[0]
    shown = [place for place in range(inputs.source.stop) if not tokens.special[place]]
    if pixels.ndim < 4 or {tokens.segments[place] for place in shown} - {*tokens.grids}:
        raise UnsupportedModelError(
            f"parts of a picture cannot be masked in {facts.name}: it is not known which of its "
            "pixels make them"
        )
    return hidden[:, shown]
