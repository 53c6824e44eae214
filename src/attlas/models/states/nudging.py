"""Nudges: small changes to the vectors of single tokens on their way into a model.

A method may mask, delete, repeat and batch the tokens of its question. A token keeps its nudge
through all of that because its id carries it: an id beyond the vocabulary encodes a token and a
nudge. Within the block, the embeddings understand such ids.
"""

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from dataclasses import replace
from functools import partial
from typing import Any

import torch
from torch import Tensor, nn

from attlas.errors import UnsupportedModelError
from attlas.models.asking.question import Question
from attlas.models.encoding.inputs import Stream
from attlas.models.facts.evaluation_mode import evaluation_mode
from attlas.models.facts.hooks import hooking
from attlas.shapes import Directions, Hidden


@contextmanager
def nudging(question: Question, nudges: Directions, chosen: Hidden) -> Iterator[Question]:
    """The same question, with the vectors of the chosen tokens moved by one nudge each.

    `chosen` marks the tokens of all rows, and `nudges` follow their order. The question is valid
    within the block; the model is restored afterwards.
    """
    subject, inputs = question.subject, question.inputs
    check_words(question)
    tables = [each for each in subject.model.modules() if isinstance(each, nn.Embedding)]
    stride = max(each.num_embeddings for each in tables)
    numbers = torch.zeros(chosen.shape, dtype=torch.long)
    numbers[chosen] = torch.arange(1, len(nudges) + 1)
    moves = torch.cat([nudges.new_zeros(1, nudges.shape[1]), nudges]).to(subject.device)

    def tagged(stream: Stream) -> Tensor:
        own = inputs.arguments[stream.argument]
        return own + stride * numbers[:, stream.start : stream.stop].to(own)

    arguments = {stream.argument: tagged(stream) for stream in inputs.streams()}
    moved = replace(inputs, arguments={**inputs.arguments, **arguments})
    with evaluation_mode(subject.model), hooking() as hooks:
        for table in tables:  # other forwards, not hooks: so all hooks see the tagged ids
            own_moves = moves if table in subject.ways_in else None
            hooks.instead(table, partial(_read_tags, stride, own_moves))
        yield question.about(moved)


def check_words(question: Question) -> None:
    """Raise if tokens do not enter the model through their ids."""
    inputs = question.inputs
    names = [stream.argument for stream in inputs.streams()]
    if any(inputs.arguments[name].ndim != 2 for name in names):
        raise UnsupportedModelError(
            f"the vectors of {question.subject.name} cannot be nudged: not all of its tokens "
            "come from a text"
        )
    if not any(isinstance(module, nn.Embedding) for module in question.subject.ways_in):
        raise UnsupportedModelError(
            f"the vectors of {question.subject.name} cannot be nudged: its tokens do not "
            "come from an embedding table"
        )


def _read_tags(
    stride: int, moves: Tensor | None, forward: Callable[..., Any]
) -> Callable[..., Any]:
    """A forward that takes tagged ids, and adds the move of each tag."""

    def read(ids: Tensor, *others: Any, **named: Any) -> Any:
        vectors = forward(ids % stride, *others, **named)
        return vectors if moves is None else vectors + moves.to(vectors)[ids // stride]

    return read
