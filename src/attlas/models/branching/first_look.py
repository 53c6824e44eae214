"""The first look at a question, which finds its targets: recorded on a GPU, as branches are."""

from collections.abc import Mapping

import torch
from torch import Tensor

from attlas.models.asking.question import Question, first_places, learn
from attlas.models.asking.reading import can_be_recorded
from attlas.models.facts.evaluation_mode import evaluation_mode
from attlas.models.tap.recording import run_recorded


def look_recorded(question: Question) -> None:
    """Find the target of each row, by a recorded pass where that is possible."""
    subject, inputs = question.subject, question.inputs
    if question.is_answered or not can_be_recorded(question.subject):
        return
    first = first_places(subject, inputs, question.asked)

    def work(arguments: Mapping[str, Tensor]) -> list[Tensor]:
        return [subject.run(arguments, first)]

    with evaluation_mode(subject.model), torch.no_grad():
        (logits,) = run_recorded(subject.model, ("look", first), inputs.arguments, work)
    learn(subject, inputs, question.asked, logits)
