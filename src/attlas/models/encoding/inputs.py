"""Inputs: a batch of equal length with the arguments of the model and the tokens of each row."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import torch
from torch import Tensor

from attlas.tokens import Tokens

_NOT_OF_TEXT = ("compared", "decoder", "pixel", "visual", "image", "sound", "aspect")
_OF_TEXT = ("image_attention_mask", "image_embeds_position_mask")
COMPARED = "compared_with"  # the vector of a text that the input is compared with


@dataclass(frozen=True)
class Stream:
    """Tokens that run through one stack: the argument that brings them, and their positions."""

    argument: str
    start: int
    stop: int

    def __len__(self) -> int:
        return self.stop - self.start

    @property
    def positions(self) -> tuple[int, ...]:
        """The positions of this stream's tokens among all tokens of the input."""
        return tuple(range(self.start, self.stop))


@dataclass(frozen=True, eq=False)
class Inputs:
    """A batch of inputs of equal length: the model's arguments, and the tokens of each row.

    `source` is what the encoder or the only stack reads; `prefix` is what the decoder of an
    encoder–decoder has written so far; `picture` is the picture that comes with a text.
    """

    arguments: Mapping[str, Tensor]
    tokens: tuple[Tokens, ...]
    texts: tuple[Any, ...]
    source: Stream
    prefix: Stream | None = None
    notes: tuple[tuple[str, ...], ...] = ()
    chains: tuple[tuple[int, ...], ...] = ()  # token ids of the target, if fed in
    picture: Stream | None = None
    pictures: tuple[Mapping[str, Any], ...] = ()  # as the model sees them, by segment, of each row

    @classmethod
    def of_image(cls, pixels: Tensor, tokens: Tokens, image: Any) -> "Inputs":
        """A batch of one picture."""
        return cls(
            {"pixel_values": pixels},
            (tokens,),
            (image,),
            Stream("pixel_values", 0, len(tokens)),
            notes=((),),
        )

    def __len__(self) -> int:
        return len(self.tokens)

    @property
    def of_model(self) -> dict[str, Tensor]:
        """The arguments that the model itself takes."""
        return {name: value for name, value in self.arguments.items() if name != COMPARED}

    @property
    def shape(self) -> tuple[Any, ...]:
        """A key: inputs of the same shape can share a batch."""
        shapes = {
            name: (len(value) // len(self), *value.shape[1:])
            for name, value in self.arguments.items()
        }
        chain = len(self.chains[0]) if self.chains else 0
        return (tuple(sorted(shapes.items())), self.source, self.prefix, self.picture, chain)

    def rows(self, rows: Sequence[int]) -> "Inputs":
        """The batch of these rows; a row may occur more than once."""
        return replace(
            self,
            arguments=self.arguments_of(torch.as_tensor(list(rows), dtype=torch.long)),
            tokens=tuple(self.tokens[row] for row in rows),
            texts=tuple(self.texts[row] for row in rows),
            notes=tuple(self.notes[row] for row in rows),
            chains=tuple(self.chains[row] for row in rows) if self.chains else (),
            pictures=tuple(self.pictures[row] for row in rows) if self.pictures else (),
        )

    def arguments_of(self, rows: Tensor) -> dict[str, Tensor]:
        """What the model is given for these rows."""
        return {name: _blocks(each, len(self), rows) for name, each in self.arguments.items()}

    def streams(self) -> list[Stream]:
        """All streams: the source, and the prefix or picture if there is one."""
        return [each for each in (self.source, self.prefix, self.picture) if each is not None]

    def queries_and_keys(self, kind: str) -> tuple[Stream, Stream]:
        """The streams of the queries (rows) and of the keys (columns) at a site of this kind."""
        whole = Stream("", 0, len(self.tokens[0]))
        if self.picture is not None:
            queries = self.picture if kind in ("vision", "cross_vision") else self.source
            keys = self.picture if kind in ("vision", "cross") else self.source
            return (whole, whole) if kind == "all" else (queries, keys)
        if kind == "pooling":  # its only row belongs to no token and is shown at the first
            return Stream(self.source.argument, 0, 1), self.source
        if kind == "all":
            return self.prefix or self.source, whole
        if self.prefix is None or kind == "encoder":
            return self.source, self.source
        return self.prefix, self.source if kind == "cross" else self.prefix

    def companions(self, stream: Stream) -> list[str]:
        """The arguments with one entry for each token of a stream: ids, mask, segment ids."""
        ids = self.arguments[stream.argument]
        return [
            name
            for name, value in self.arguments.items()
            if _side(name) == _side(stream.argument) and value.shape[:2] == ids.shape[:2]
        ]


def _side(argument: str) -> str:
    """What an argument belongs to: the text, the decoder, a picture or a sound."""
    first = argument.split("_")[0] if not argument.startswith("input_features") else "sound"
    return first if first in _NOT_OF_TEXT and argument not in _OF_TEXT else "text"


def _blocks(value: Tensor, rows: int, index: Tensor) -> Tensor:
    """These rows of an argument; each may be a block of several entries, as patches in one list."""
    chosen = index.to(value.device)
    if len(value) == rows:
        return value.index_select(0, chosen)
    blocks = value.reshape(rows, -1, *value.shape[1:])
    return blocks.index_select(0, chosen).flatten(0, 1)


def stack(inputs: Sequence[Inputs]) -> Inputs:
    """Join inputs of the same shape into one batch."""
    first = inputs[0]
    if len(inputs) == 1:
        return first
    return replace(
        first,
        arguments={k: torch.cat([each.arguments[k] for each in inputs]) for k in first.arguments},
        tokens=tuple(tokens for each in inputs for tokens in each.tokens),
        texts=tuple(text for each in inputs for text in each.texts),
        notes=tuple(notes for each in inputs for notes in each.notes),
        chains=tuple(chain for each in inputs for chain in each.chains),
        pictures=tuple(seen for each in inputs for seen in each.pictures),
    )


def group_by_shape(inputs: Sequence[Inputs], most: int) -> list[list[int]]:
    """Group inputs by shape into batches of at most `most` rows, ordered by their first input."""
    groups: dict[Any, list[int]] = {}
    for index, each in enumerate(inputs):
        groups.setdefault(each.shape, []).append(index)
    batches = [group[i : i + most] for group in groups.values() for i in range(0, len(group), most)]
    return sorted(batches)
