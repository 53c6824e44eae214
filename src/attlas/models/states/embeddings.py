"""Embeddings: the vectors with which tokens enter a model, read or replaced on their way in.

There is no table of models. Every input embedding of a submodel is watched, and the ids that it
gets show which tokens a call is about.
"""

from collections.abc import Iterator, Sequence
from contextlib import contextmanager, suppress
from typing import Any

import torch
from torch import Tensor, nn

from attlas.models.asking.open_model import OpenModel
from attlas.models.asking.question import Question
from attlas.models.asking.readout import last_stream
from attlas.models.asking.scores import (
    differentiate,
    own_scores_in_graph,
    run_logits,
    target_scores_in_graph,
)
from attlas.models.encoding.inputs import Inputs
from attlas.models.facts.evaluation_mode import evaluation_mode
from attlas.models.facts.hooks import hooking
from attlas.models.facts.model_facts import BY_MASK
from attlas.models.facts.sites import find_block
from attlas.models.facts.stages import has_stages
from attlas.models.states.entrance import Entered, Entrance
from attlas.shapes import BatchScores, StreamVectors


class _AllIn(Exception):
    """Every stream has entered: stop the pass."""


class _Glance(Entrance):
    """Stops the pass as soon as every stream has entered."""

    def _leaf(self, stream: int, layout: str, vectors: Tensor) -> Tensor:
        entering = super()._leaf(stream, layout, vectors)
        if {call.stream for call in self._calls} == set(range(len(self._streams))):
            raise _AllIn
        return entering


@contextmanager
def entering(
    subject: OpenModel, inputs: Inputs, values: Sequence[StreamVectors] | None = None
) -> Iterator[Entrance]:
    """Watch the vectors that enter the model within the block; `values` replace them."""
    entrance = Entrance(inputs, values)
    with _watched(subject, entrance):
        yield entrance


@contextmanager
def _watched(subject: OpenModel, entrance: Entrance) -> Iterator[None]:
    """Hooks where the vectors of each stream come in; below the first block and in the stack of a
    picture, only embeddings of ids are watched.
    """
    with hooking() as hooks:
        for module, hook in _doors(subject, entrance):
            hooks.before(module, hook, with_kwargs=True)
        below = entrance.has_sound or entrance.looks_across or entrance.has_pictures
        for module in subject.ways_in:
            if isinstance(module, nn.Embedding) or not below:
                hooks.after(module, entrance.meet, with_kwargs=True)
        yield


def _doors(subject: OpenModel, entrance: Entrance) -> list[tuple[nn.Module, Any]]:
    """The modules before which vectors come in that no embedding of ids makes, and their hooks."""
    by_mask = entrance.has_pictures and BY_MASK in subject.marks.values()
    joins = has_stages(subject.model) and not subject.ways_in
    if entrance.has_sound or by_mask or joins:
        return [(find_block(subject.model, subject.places[0][1]), entrance.hear)]
    if entrance.has_pictures:
        return [(subject.text_stack, entrance.enter)]
    if not entrance.looks_across:
        return []
    reading = {path for site, path in subject.places if site.kind == "cross"}
    return [(subject.model.get_submodule(path), entrance.look) for path in reading]


def entered_vectors(question: Question) -> list[StreamVectors]:
    """The vectors with which the tokens of each stream enter; the pass stops right after them."""
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
    """The vectors of each stream with the gradient of the target on them, and the target's score.

    With `values`, the streams enter the model with these vectors instead.
    """
    subject = question.subject
    subject.check_gradients()
    with (
        torch.enable_grad(),
        evaluation_mode(subject.model),
        entering(subject, question.inputs, values) as entrance,
        last_stream(subject) as stream,
    ):
        scores = (
            own_scores_in_graph(question, of)
            if values is None
            else target_scores_in_graph(question, of)
        )
        gradients = differentiate(question, scores, entrance.all_leaves(), stream)
    return entrance.entered(gradients), scores.detach()


def score_entering(question: Question, of: str, values: Sequence[StreamVectors]) -> BatchScores:
    """The score of each row's target when its streams enter the model with these vectors."""
    subject = question.subject
    with (
        torch.no_grad(),
        evaluation_mode(subject.model),
        entering(subject, question.inputs, values),
    ):
        return target_scores_in_graph(question, of)


def over_tokens(inputs: Inputs, streams: Sequence[tuple[int, Tensor]]) -> Tensor:
    """Join the scores of streams, each a start and `[batch, token]`, over all tokens."""
    first = streams[0][1]
    scores = first.new_zeros(len(first), len(inputs.tokens[0]))
    for start, own in streams:
        scores[:, start : start + own.shape[1]] = own
    return scores
