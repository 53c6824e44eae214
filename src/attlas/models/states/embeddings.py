"""Embeddings: the vectors that tokens enter a model as, read or exchanged on their way in.

There is no table of models: every embedding that some part of the model names as its own way in is
watched, and which tokens a call is about is told by the ids that it is given.
"""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import ExitStack, contextmanager, suppress
from dataclasses import dataclass
from typing import Any

import torch
from torch import Tensor, nn

from attlas.errors import UnsupportedModelError
from attlas.models.asking.open_model import OpenModel
from attlas.models.asking.question import Question
from attlas.models.asking.readout import last_stream
from attlas.models.asking.scores import differentiate, run_logits, target_scores_in_graph
from attlas.models.encoding.inputs import Inputs
from attlas.models.facts.evaluation_mode import evaluation_mode
from attlas.shapes import BatchScores, StreamVectors, Vectors


@dataclass(frozen=True, eq=False)
class Entered:
    """The vectors of one stream, and the gradient of the target on them.

    `start` is the place of the first of them among all tokens of the input.
    """

    start: int
    values: Vectors
    gradient: Tensor  # of the same shape; a row for each target where one input has several

    @property
    def stop(self) -> int:
        """The place behind the last of them."""
        return self.start + self.values.shape[1]


@dataclass(frozen=True, eq=False)
class _Call:
    """One call of a watched embedding: which stream it brought in, how, and as what."""

    stream: int
    layout: str  # as_it_is, sequence_first, copy (one place late), or pixels
    vectors: Tensor  # as the model goes on with them


class Entrance:
    """Watches the vectors of a forward pass on their way in, and exchanges them if it is told to.

    `values` are what each stream enters as, `[batch, token, feature]`, in place of its own.
    """

    def __init__(self, inputs: Inputs, values: Sequence[StreamVectors] | None) -> None:
        self._arguments = inputs.arguments
        self._streams = inputs.streams()
        self._values = values
        self._calls: list[_Call] = []

    @property
    def leaves(self) -> list[Tensor]:
        """What the graph of the pass begins with."""
        return [call.vectors for call in self._calls]

    def meet(
        self, _: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any], output: Any
    ) -> Any:
        """A hook behind a watched embedding: what it gave becomes a leaf of the graph."""
        given = args[0] if args else next(iter(kwargs.values()), None)
        place = self._place(given)
        if place is None or not isinstance(output, Tensor):
            return output
        stream, layout = place
        entering = output
        if self._values is not None:
            entering = _laid_out(self._values[stream].to(output), layout, output)
        leaf = entering.detach().requires_grad_(torch.is_grad_enabled())
        self._calls.append(_Call(stream, layout, leaf))
        return leaf

    def _place(self, given: Any) -> tuple[int, str] | None:
        """Which stream this is the way in of, one that has not come in yet if there are two."""
        if not isinstance(given, Tensor):
            return None
        met = {call.stream for call in self._calls}
        order = sorted(range(len(self._streams)), key=lambda number: number in met)
        for number in order:
            layout = _layout(given, self._arguments[self._streams[number].argument])
            if layout is not None:
                return number, layout
        return None

    def beside(self, number: int, vectors: Tensor) -> tuple[int, Vectors]:
        """Vectors that were added to those of a leaf, or put before them: from where, and by token.

        The number is that of the leaf.
        """
        call = self._calls[number]
        stream, found = self._streams[call.stream], _by_token(vectors, call.layout)
        start = stream.stop - found.shape[1]
        if start < stream.start:
            raise UnsupportedModelError(
                f"vectors for {found.shape[1]} places are added to those of {stream.argument}, "
                f"which has {len(stream.positions)} tokens"
            )
        return start, found

    def entered(self, gradients: Sequence[Tensor | None]) -> list[Entered]:
        """The vectors of each stream with their gradients, one for each of the leaves."""
        found = []
        for number, stream in enumerate(self._streams):
            own = [
                (call, gradient)
                for call, gradient in zip(self._calls, gradients, strict=True)
                if call.stream == number
            ]
            if not own:
                raise UnsupportedModelError(
                    f"the tokens of {stream.argument} do not enter this model by an embedding "
                    "that can be found, so nothing can be said of their vectors"
                )
            values = _by_token(own[0][0].vectors.detach(), own[0][0].layout)
            total = None
            for call, gradient in own:
                if gradient is not None:
                    each = _by_token(gradient, call.layout)
                    total = each if total is None else total + each
            rows = len(values) if total is None else len(total)
            blank = values.new_zeros(rows, *values.shape[1:])
            start = stream.stop - values.shape[1]
            found.append(Entered(start, values, blank if total is None else total))
        return found


class _AllIn(Exception):
    """Every stream has come in."""


class _Glance(Entrance):
    """Goes no further with the pass than until every stream has come in."""

    def meet(
        self, module: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any], output: Any
    ) -> Any:
        entering = super().meet(module, args, kwargs, output)
        if {call.stream for call in self._calls} == set(range(len(self._streams))):
            raise _AllIn
        return entering


@contextmanager
def entering(
    subject: OpenModel, inputs: Inputs, values: Sequence[StreamVectors] | None = None
) -> Iterator[Entrance]:
    """Within the block, the entrance sees the vectors of a forward pass on their way in."""
    entrance = Entrance(inputs, values)
    with _watched(subject, entrance):
        yield entrance


@contextmanager
def _watched(subject: OpenModel, entrance: Entrance) -> Iterator[None]:
    with ExitStack() as stack:
        for module in subject.ways_in:
            handle = module.register_forward_hook(entrance.meet, with_kwargs=True)
            stack.callback(handle.remove)
        yield


def entered_vectors(question: Question) -> list[StreamVectors]:
    """The vectors that the tokens of each stream enter the model as; little of it is run."""
    subject, glance = question.subject, _Glance(question.inputs, None)
    with (
        torch.no_grad(),
        evaluation_mode(subject.model),
        _watched(subject, glance),
        suppress(_AllIn),
    ):
        run_logits(question)
    return [each.values for each in glance.entered([None] * len(glance.leaves))]


def embedding_gradients(
    question: Question, of: str, values: Sequence[StreamVectors] | None = None
) -> tuple[list[Entered], BatchScores]:
    """The vectors of each stream with the gradient of the target on them, and the target.

    With `values`, the streams enter the model as these instead.
    """
    subject = question.subject
    with (
        torch.enable_grad(),
        evaluation_mode(subject.model),
        entering(subject, question.inputs, values) as entrance,
        last_stream(subject) as stream,
    ):
        scores = target_scores_in_graph(question, of)
        gradients = differentiate(question, scores, entrance.leaves, stream)
    return entrance.entered(gradients), scores.detach()


def score_entering(question: Question, of: str, values: Sequence[StreamVectors]) -> BatchScores:
    """The target of each row when its streams enter the model as these vectors."""
    subject = question.subject
    with (
        torch.no_grad(),
        evaluation_mode(subject.model),
        entering(subject, question.inputs, values),
    ):
        return target_scores_in_graph(question, of)


def over_tokens(inputs: Inputs, parts: Sequence[tuple[int, Tensor]]) -> Tensor:
    """Scores of streams, `[batch, token]` from a place on, put where their tokens are."""
    first = parts[0][1]
    scores = first.new_zeros(len(first), len(inputs.tokens[0]))
    for start, part in parts:
        scores[:, start : start + part.shape[1]] = part
    return scores


def _layout(given: Tensor, own: Tensor) -> str | None:
    """How what an embedding is given stands to the argument that brings a stream in."""
    if own.ndim != 2:
        return "pixels" if given.ndim == own.ndim else None
    if given.dtype != own.dtype or given.ndim != 2:
        return None
    if given.shape == own.shape:
        if torch.equal(given, own):
            return "as_it_is"
        # Encoder–decoders that classify hand their decoder the source again, one place late.
        return "copy" if torch.equal(given[:, 1:], own[:, :-1]) else None
    same = given.shape == own.T.shape and torch.equal(given, own.T)
    return "sequence_first" if same else None


def _by_token(vectors: Tensor, layout: str) -> Vectors:
    """What an embedding gave as `[batch, token, feature]`.

    The start token of a copy, whose place no token has, is counted to the last token.
    """
    if layout == "sequence_first":
        return vectors.transpose(0, 1)
    if layout == "copy":
        return vectors.roll(-1, dims=1)
    if vectors.ndim == 4:  # `[batch, feature, row, column]`
        return vectors.flatten(2).transpose(1, 2)
    return vectors


def _laid_out(values: Vectors, layout: str, output: Tensor) -> Tensor:
    """Vectors `[batch, token, feature]` as the embedding would have given them."""
    if layout == "sequence_first":
        return values.transpose(0, 1)
    if layout == "copy":
        return torch.cat([output[:, :1], values[:, :-1]], dim=1)
    return values.transpose(1, 2).reshape(output.shape) if output.ndim == 4 else values
