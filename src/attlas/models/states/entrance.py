"""The entrance of a model: where the vectors of tokens come in, and how each call lays them out."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from attlas.errors import UnsupportedModelError
from attlas.models.encoding.inputs import Inputs
from attlas.models.facts.sites import replace_other
from attlas.shapes import StreamVectors, Vectors

SOUNDS = ("input_values", "input_features")  # arguments that bring a sound


@dataclass(frozen=True, eq=False)
class Entered:
    """The vectors of one stream, and the gradient of the target on them.

    `start` is the position of the first vector among all tokens of the input.
    """

    start: int
    values: Vectors
    gradient: Tensor  # of the same shape, or with a row for each target of a shared input

    @property
    def stop(self) -> int:
        """The position behind the last vector."""
        return self.start + self.values.shape[1]


@dataclass(frozen=True, eq=False)
class _Call:
    """One call of a watched embedding: its stream, its layout and its vectors."""

    stream: int
    layout: str  # as_it_is, filled (up to whole windows), sequence_first, copy (shifted), pixels
    tokens: int  # of the stream; what the model fills it up with comes after them
    vectors: Tensor  # that the model continues with a copy of


class Entrance:
    """Watches the vectors that enter the model in a forward pass, and replaces them if asked.

    `values` are the replacements for each stream, `[batch, token, feature]`.
    """

    def __init__(self, inputs: Inputs, values: Sequence[StreamVectors] | None) -> None:
        self._arguments = inputs.arguments
        self._streams = inputs.streams()
        self._values = values
        self._calls: list[_Call] = []
        self.has_sound = inputs.source.argument in SOUNDS
        self.looks_across = inputs.prefix is not None and inputs.source.argument == "pixel_values"
        self.has_pictures = bool(inputs.pictures) and inputs.source.argument == "input_ids"
        self._looked: tuple[Tensor, Tensor] | None = None  # what cross-attention reads, and gets

    @property
    def leaves(self) -> list[Tensor]:
        """The leaves of the autograd graph of the pass so far."""
        return [call.vectors for call in self._calls]

    def all_leaves(self) -> list[Tensor]:
        """The leaves when the pass is over; raises if the tokens of a stream entered unseen."""
        met = {call.stream for call in self._calls}
        for number, stream in enumerate(self._streams):
            if number not in met:
                raise UnsupportedModelError(
                    f"the tokens of {stream.argument} do not enter this model through an embedding "
                    "that can be found, so their vectors cannot be read"
                )
        return self.leaves

    def meet(
        self, _: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any], output: Any
    ) -> Any:
        """A hook behind a watched embedding: make its output, or its replacement, a leaf."""
        given = args[0] if args else next(iter(kwargs.values()), None)
        place = self._place(given)
        vectors = output[0] if isinstance(output, tuple) and output else output
        if place is None or not isinstance(vectors, Tensor):
            return output
        handed_on = self._leaf(*place, vectors)
        return (handed_on, *output[1:]) if isinstance(output, tuple) else handed_on

    def _leaf(self, stream: int, layout: str, vectors: Tensor) -> Tensor:
        """A copy of vectors, or of their replacement, which the autograd graph begins at."""
        entering = vectors
        if self._values is not None:
            entering = _laid_out(self._values[stream].to(vectors), layout, vectors)
        leaf = entering.detach().requires_grad_(torch.is_grad_enabled())
        tokens = len(self._streams[stream].positions)
        self._calls.append(_Call(stream, layout, tokens, leaf))
        return leaf.clone()  # some families write into the vectors; a leaf does not allow it

    def enter(
        self, _: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]] | None:
        """A hook before a language model that gets words and patches as vectors: make leaves."""
        vectors = kwargs.get("inputs_embeds")
        if not isinstance(vectors, Tensor):
            return None
        return args, {**kwargs, "inputs_embeds": self._leaf(0, "as_it_is", vectors)}

    def look(
        self, module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """A hook before cross-attention: the vectors of the picture that it reads are leaves."""
        return replace_other(module, args, kwargs, self._look)

    def _look(self, vectors: Tensor) -> Tensor:
        if self._looked is None:
            rows = len(self._arguments[self._streams[1].argument])
            joined = vectors.reshape(
                rows, -1, vectors.shape[-1]
            )  # tiles may lie in rows of their own
            self._looked = vectors, self._leaf(0, "as_it_is", joined).reshape(vectors.shape)
        known, handed_on = self._looked
        if vectors is not known and vectors is not handed_on:
            raise UnsupportedModelError(
                "the layers of this model read different vectors of one picture, so its parts have "
                "none that is theirs"
            )
        return handed_on

    def hear(
        self, _: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]
    ) -> tuple[tuple[Any, ...], dict[str, Any]]:
        """A hook before the first block, where the vectors of frames or patches enter."""
        if args:
            return (self._leaf(0, "as_it_is", args[0]), *args[1:]), dict(kwargs)
        name = next(iter(kwargs))
        return args, {**kwargs, name: self._leaf(0, "as_it_is", kwargs[name])}

    def _place(self, given: Any) -> tuple[int, str] | None:
        """The stream and layout of an embedding call, preferring streams not yet entered."""
        if not isinstance(given, Tensor):
            return None
        met = {call.stream for call in self._calls}
        first = 1 if self.has_pictures else 0  # words and patches enter behind the embedding
        order = sorted(range(first, len(self._streams)), key=lambda number: number in met)
        for number in order:
            layout = _layout(given, self._arguments[self._streams[number].argument])
            if layout is not None:
                return number, layout
        return None

    def beside(self, number: int, vectors: Tensor) -> tuple[int, Vectors]:
        """Vectors that were added to those of leaf `number` or put before them, by token.

        The result is the position of the first one, and the vectors.
        """
        call = self._calls[number]
        stream, found = self._streams[call.stream], _by_token(vectors, call)
        start = stream.stop - found.shape[1]
        if start < stream.start:
            raise UnsupportedModelError(
                f"vectors for {found.shape[1]} positions are added to those of {stream.argument}, "
                f"which has {len(stream.positions)} tokens"
            )
        return start, found

    def entered(self, gradients: Sequence[Tensor | None]) -> list[Entered]:
        """The vectors of each stream with their gradients; `gradients` has one for each leaf."""
        self.all_leaves()
        found = []
        for number, stream in enumerate(self._streams):
            own = [
                (call, gradient)
                for call, gradient in zip(self._calls, gradients, strict=True)
                if call.stream == number
            ]
            values = _by_token(own[0][0].vectors.detach(), own[0][0])
            total = None
            for call, gradient in own:
                if gradient is not None:
                    each = _by_token(gradient, call)
                    total = each if total is None else total + each
            rows = len(values) if total is None else len(total)
            blank = values.new_zeros(rows, *values.shape[1:])
            start = stream.stop - values.shape[1]
            found.append(Entered(start, values, blank if total is None else total))
        return found


def _layout(given: Tensor, own: Tensor) -> str | None:
    """How the input of an embedding relates to the argument of a stream; None if not at all."""
    if own.ndim != 2:
        return "pixels" if given.ndim == own.ndim else None
    if given.dtype != own.dtype or given.ndim != 2:
        return None
    if given.shape == own.shape:
        if torch.equal(given, own):
            return "as_it_is"
        # Encoder–decoders that classify give their decoder the source again, shifted by one place.
        return "copy" if torch.equal(given[:, 1:], own[:, :-1]) else None
    if given.shape == own.T.shape and torch.equal(given, own.T):
        return "sequence_first"
    length = own.shape[1]
    fits = len(given) == len(own) and given.shape[1] > length
    return "filled" if fits and torch.equal(given[:, :length], own) else None


def _by_token(vectors: Tensor, call: _Call) -> Vectors:
    """The output of an embedding as `[batch, token, feature]`.

    The start token of a copy has no token of its own and counts as the last token.
    """
    if call.layout == "sequence_first":
        return vectors.transpose(0, 1)
    if call.layout == "copy":
        return vectors.roll(-1, dims=1)
    if call.layout == "filled":
        return vectors[:, : call.tokens]
    if vectors.ndim == 4:  # `[batch, feature, row, column]`
        return vectors.flatten(2).transpose(1, 2)
    return vectors


def _laid_out(values: Vectors, layout: str, output: Tensor) -> Tensor:
    """Vectors `[batch, token, feature]` in the layout of the embedding's output."""
    if layout == "sequence_first":
        return values.transpose(0, 1)
    if layout == "copy":
        return torch.cat([output[:, :1], values[:, :-1]], dim=1)
    if layout == "filled":
        return torch.cat([values, output[:, values.shape[1] :]], dim=1)
    return values.transpose(1, 2).reshape(output.shape) if output.ndim == 4 else values
