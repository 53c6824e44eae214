"""Nudges: the vectors of single tokens moved a little on their way into a model.

A method may mask, delete, repeat and batch the tokens of its question. So that a token keeps its
nudge through all of that, its id carries it: an id beyond the vocabulary names a token and a nudge,
and while the nudges last the embeddings read such ids.
"""

from collections.abc import Callable, Iterator
from contextlib import ExitStack, contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from attlas.errors import UnsupportedModelError
from attlas.models.asking.question import Question
from attlas.models.encoding.inputs import Stream
from attlas.models.facts.evaluation_mode import evaluation_mode
from attlas.shapes import Directions, Hidden


@contextmanager
def nudging(question: Question, nudges: Directions, chosen: Hidden) -> Iterator[Question]:
    """The same question about tokens that enter moved, the chosen ones of all rows in turn.

    It can be asked within the block, and rows of it be taken; the model is whole again after it.
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
    with evaluation_mode(subject.model), ExitStack() as stack:
        for table in tables:
            own_moves = moves if table in subject.ways_in else None
            stack.enter_context(_reading_tags(table, stride, own_moves))
        yield replace(question, inputs=moved, known_scores=())


def check_words(question: Question) -> None:
    """An error where tokens do not enter by their ids."""
    inputs = question.inputs
    names = [stream.argument for stream in inputs.streams()]
    if any(inputs.arguments[name].ndim != 2 for name in names):
        raise UnsupportedModelError(
            f"the vectors of {question.subject.name} cannot be nudged: not all of its tokens are "
            "those of a text"
        )
    if not any(isinstance(module, nn.Embedding) for module in question.subject.ways_in):
        raise UnsupportedModelError(
            f"the vectors of {question.subject.name} cannot be nudged: its tokens enter by no "
            "table of vectors"
        )


@contextmanager
def _reading_tags(table: nn.Module, stride: int, moves: Tensor | None) -> Iterator[None]:
    """Within the block the table takes ids with a tag, and adds the tag's move where it has one.

    Its own forward is exchanged, and not hooked, so that all hooks see the tagged ids.
    """
    before = vars(table).get("forward")
    table.forward = _read_tags(table.forward, stride, moves)
    try:
        yield
    finally:
        if before is None:
            del table.forward
        else:
            table.forward = before


def _read_tags(
    forward: Callable[..., Any], stride: int, moves: Tensor | None
) -> Callable[..., Any]:
    def read(ids: Tensor, *others: Any, **named: Any) -> Any:
        vectors = forward(ids % stride, *others, **named)
        return vectors if moves is None else vectors + moves.to(vectors)[ids // stride]

    return read
