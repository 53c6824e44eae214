"""Hidden states before and after the blocks of a model."""

from collections.abc import Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import replace
from typing import Any

import torch
from torch import Tensor, nn

from attlas.errors import UnsupportedModelError
from attlas.models.asking.open_model import OpenModel
from attlas.models.asking.question import Question
from attlas.models.asking.readout import last_stream
from attlas.models.asking.scores import differentiate, own_scores_in_graph, run_logits
from attlas.models.facts.evaluation_mode import evaluation_mode
from attlas.models.facts.hooks import hooking
from attlas.models.facts.sites import find_block
from attlas.models.tap.call import Call
from attlas.models.tap.on_patches import call_on_patches, slopes_on_patches, states_on_patches
from attlas.results import Site

STREAM = "hidden_states"


@contextmanager
def block_states(subject: OpenModel, places: Sequence[tuple[Site, str]]) -> Iterator[list[Tensor]]:
    """The input of the block of each of these sites, filled in when the model runs.

    `places` are in the order of call, one for each call of a block. The states are part of the
    autograd graph, which starts at the first of them if nothing below needs a gradient.
    """
    held: list[Tensor] = []

    def hold(block: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> Any:
        stream = args[0] if args else kwargs.get(STREAM)
        if not isinstance(stream, Tensor):
            raise UnsupportedModelError(
                f"{type(block).__name__} does not get its hidden states as {STREAM}, so they "
                "cannot be read"
            )
        held.append(stream if stream.requires_grad else stream.detach().requires_grad_())
        return ((held[-1], *args[1:]), kwargs) if args else (args, {**kwargs, STREAM: held[-1]})

    with hooking() as hooks:
        blocks = [find_block(subject.model, path) for _, path in places]
        for block in {id(each): each for each in blocks}.values():
            hooks.before(block, hold, with_kwargs=True)
        yield held


def state_gradients(question: Question, of: str) -> list[tuple[Call, Tensor, Tensor]]:
    """For each self-attention: the call, the input of its block, and the gradient on that input.

    States and gradients are `[batch, query, feature]`.
    """
    subject = question.subject
    places = [place for place in subject.places if place[0].kind != "cross"]
    with (
        torch.enable_grad(),
        subject.tap(sites=[site for site, _ in places]) as seen,
        block_states(subject, places) as states,
        last_stream(subject) as stream,
    ):
        scores = own_scores_in_graph(question, of)
        gradients = differentiate(question, scores, states, stream)
    calls = [replace(call, weights=call.weights.detach()) for call in seen.calls]
    found = [
        (call, state.detach(), torch.zeros_like(state) if gradient is None else gradient)
        for call, state, gradient in zip(calls, states, gradients, strict=True)
    ]
    stages = subject.stages(question.inputs)
    return [
        (
            call_on_patches(call, stages),
            states_on_patches(state, stages),
            slopes_on_patches(gradient, stages),
        )
        for call, state, gradient in found
    ]


@contextmanager
def layer_outputs(subject: OpenModel) -> Iterator[list[Tensor]]:
    """The output of each layer of the stack that is read out, filled in when the model runs."""
    kept: list[Tensor] = []

    def keep(_module: Any, _arguments: Any, output: Any) -> None:
        kept.append(output if isinstance(output, Tensor) else output[0])

    kind = subject.sites[-1].kind
    paths = [path for site, path in subject.places if site.kind == kind]
    blocks = {id(block): block for block in (find_block(subject.model, path) for path in paths)}
    with hooking() as hooks:
        for block in blocks.values():
            hooks.after(block, keep)
        yield kept


def read_states(question: Question) -> list[Tensor]:
    """The input of the first layer (with positions) and the output of each layer.

    They are `[batch, token, feature]`, for the stack that is read out.
    """
    subject = question.subject
    kind = subject.sites[-1].kind
    places = [place for place in subject.places if place[0].kind == kind]
    with (
        torch.no_grad(),
        evaluation_mode(subject.model),
        block_states(subject, places) as handed,
        layer_outputs(subject) as given,
    ):
        run_logits(question)
    return [rows_first(question, each.detach()) for each in (handed[0], *given)]


def rows_first(question: Question, stream: Tensor) -> Tensor:
    """A hidden state as `[batch, token, feature]`; raises unless it has one row for each token."""
    if stream.ndim != 3:
        raise UnsupportedModelError(
            f"the layers of {type(question.subject.model).__name__} hand on several streams, "
            f"{tuple(stream.shape)}, so a position has no single state"
        )
    rows = stream.movedim(question.subject.stream_axes, (0, 1))
    stack = question.inputs.prefix or question.inputs.source
    if rows.shape[1] != stack.stop - stack.start:
        raise UnsupportedModelError(
            f"a layer of {question.subject.name} has {rows.shape[1]} states for "
            f"{stack.stop - stack.start} tokens, so they cannot be matched"
        )
    return rows
