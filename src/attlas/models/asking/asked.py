"""What is asked about each input, and what the model answers once it has run."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch

from attlas.models.asking.open_model import OpenModel
from attlas.models.asking.resolve import Prediction, TargetCase, resolve
from attlas.models.encoding.inputs import Inputs
from attlas.models.encoding.request import Request
from attlas.models.encoding.target import QUANTITIES, Target, score_each
from attlas.models.facts.evaluation_mode import evaluation_mode
from attlas.shapes import Logits


@dataclass(eq=False)
class Asked:
    """What is asked about one input; the rest is None or empty until the model has run on it."""

    request: Request = Request()  # noqa: RUF009  it is frozen
    target: Target | None = None
    prediction: Prediction = ()  # the model's best choices
    scores: Mapping[str, float] | None = None  # logit and probability of the target
    notes: tuple[str, ...] = ()  # what the user left open


def first_place(asked: Asked, chain: Sequence[int]) -> int:
    """The earliest place of the output that is read, counted from the end."""
    if asked.target is not None:
        return asked.target.first_place()
    saved = asked.request.target
    first = -max(len(chain), 1)
    return min(first, saved.first_place()) if isinstance(saved, Target) else first


def first_places(subject: OpenModel, inputs: Inputs, asked: Sequence[Asked]) -> int | None:
    """From which place on the output is needed; None if the model gives it whole."""
    if not subject.predicts_next:
        return None
    chains = inputs.chains or ((),) * len(asked)
    return min(first_place(each, chain) for each, chain in zip(asked, chains, strict=True))


def look(subject: OpenModel, inputs: Inputs, asked: Sequence[Asked]) -> None:
    """Run the model once, and learn from its output."""
    with evaluation_mode(subject.model), torch.no_grad():
        logits = subject.run(inputs.arguments, first_places(subject, inputs, asked))
    learn(subject, inputs, asked, logits)


def learn(subject: OpenModel, inputs: Inputs, asked: Sequence[Asked], logits: Logits) -> None:
    """Find the target of each input from the output of the unchanged model."""
    table = logits.detach().cpu()  # each row is looked at by itself
    chains = inputs.chains or ((),) * len(inputs)
    resolved = [
        resolve(TargetCase(subject, each.request, tokens, row, text, chain))
        for each, tokens, row, text, chain in zip(
            asked, inputs.tokens, table, inputs.texts, chains, strict=True
        )
    ]
    targets = [target for target, _, _ in resolved]
    columns = {of: score_each(targets, table, of).tolist() for of in QUANTITIES}
    for row, (each, (target, prediction, notes)) in enumerate(zip(asked, resolved, strict=True)):
        each.target, each.prediction, each.notes = target, prediction, notes
        each.scores = {of: column[row] for of, column in columns.items()}
