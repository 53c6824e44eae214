"""Stack states: the states of all tokens on their way through the stack that is read out."""

import torch
from torch import Tensor

from attlas.errors import UnsupportedModelError
from attlas.models.asking.question import Question
from attlas.models.asking.scores import run_logits
from attlas.models.facts.evaluation_mode import evaluation_mode
from attlas.models.states.block_states import block_states
from attlas.models.states.jacobian import streams


def read_states(question: Question) -> list[Tensor]:
    """What enters the first layer, positions and all, and what each layer gives.

    They are `[batch, token, feature]`, of the tokens of the stack that is read out.
    """
    subject = question.subject
    kind = subject.sites[-1].kind
    places = [place for place in subject.places if place[0].kind == kind]
    with (
        torch.no_grad(),
        evaluation_mode(subject.model),
        block_states(subject, places) as handed,
        streams(subject) as given,
    ):
        run_logits(question)
    return [rows_first(question, each.detach()) for each in (handed[0], *given)]


def rows_first(question: Question, stream: Tensor) -> Tensor:
    """A stream as `[batch, token, feature]`, of as many tokens as the stack has."""
    rows = stream.transpose(0, 1) if question.subject.is_sequence_first else stream
    stack = question.inputs.prefix or question.inputs.source
    if rows.shape[1] != stack.stop - stack.start:
        raise UnsupportedModelError(
            f"a layer of {question.subject.name} has {rows.shape[1]} states for "
            f"{stack.stop - stack.start} tokens: which is of which cannot be told"
        )
    return rows
