"""The state that a prediction is read from: what a model makes of a text just before its head."""

import torch

from attlas.errors import UsageError
from attlas.models.asking.question import Question
from attlas.models.asking.readout import last_stream, shares
from attlas.models.asking.scores import target_scores_in_graph
from attlas.models.facts.evaluation_mode import evaluation_mode
from attlas.shapes import StateRows


def readout_states(question: Question) -> StateRows:
    """The output of the last block where each target is read, `[batch, feature]`.

    If a target is read at several positions, it is their mean, each as heavy as its gradient. A
    model that reads a text and a picture has the states of both, side by side.
    """
    if question.is_shared:
        raise UsageError("one input has several targets: ask about one of them")
    subject = question.subject
    with torch.enable_grad(), evaluation_mode(subject.model), last_stream(subject) as stream:
        total = target_scores_in_graph(question, "logit").sum()
        gradients = torch.autograd.grad(total, stream, materialize_grads=True)
    parts = [
        (shares(gradient)[..., None] * state.detach().float()).sum(dim=1)
        for state, gradient in zip(stream, gradients, strict=True)
    ]
    return torch.cat(parts, dim=1)
