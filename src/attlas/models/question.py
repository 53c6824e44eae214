"""Question: a subject, inputs and what is explained; the one thing that a method is handed."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import torch

from attlas.models.borrow import borrowed
from attlas.models.edits import Edit
from attlas.models.inputs import Inputs
from attlas.models.readout import find_readout
from attlas.models.tap import Call
from attlas.models.target import Target
from attlas.shapes import Attention, BatchScores, Logits, QueryWeights

if TYPE_CHECKING:
    from attlas.models.subject import Subject


@dataclass(frozen=True, eq=False)
class Question:
    """A batch of inputs of equal length, and what is explained of each.

    `order` says where each row stood among the texts it was asked with.
    """

    subject: "Subject"
    inputs: Inputs
    targets: tuple[Target, ...]
    predictions: tuple[tuple[Mapping[str, Any], ...], ...]
    order: tuple[int, ...]
    found: tuple[Mapping[str, float], ...] = ()  # each target's logit and probability, as they are

    def __len__(self) -> int:
        return len(self.targets)

    def answers(self) -> Iterator[tuple[int, Target, tuple[Mapping[str, Any], ...]]]:
        """For each row: its place among the texts, its target, the model's best choices."""
        return zip(self.order, self.targets, self.predictions, strict=True)

    def rows(self, rows: Sequence[int]) -> "Question":
        """The same question for some rows; a row may be taken more than once."""
        return Question(
            self.subject,
            self.inputs.rows(rows),
            tuple(self.targets[row] for row in rows),
            tuple(self.predictions[row] for row in rows),
            tuple(self.order[row] for row in rows),
            tuple(self.found[row] for row in rows) if self.found else (),
        )

    def about(self, inputs: Inputs) -> "Question":
        """The same targets for other inputs."""
        return replace(self, inputs=inputs)

    def score(self, of: str, edits: Edit | Sequence[Edit] = ()) -> BatchScores:
        """The target of each row, as a `logit` or a `probability`, with the attention so edited."""
        with torch.no_grad():
            if not edits:
                with borrowed(self.subject.model):
                    return self.score_with_graph(of)
            with self.subject.tap(edits):
                return self.score_with_graph(of)

    def attention(self) -> list[Call]:
        """The attention of every site."""
        return self.subject.read(self.inputs)

    def gradients(self, of: str, edits: Edit | Sequence[Edit] = ()) -> list[tuple[Call, Attention]]:
        """The attention of every site with the gradient of the target on it.

        Where the output does not depend on a site (an encoder that nothing reads), it is zero.
        """
        with torch.enable_grad(), self.subject.tap(edits, gradients=True) as seen:
            total = self.score_with_graph(of).sum()
            found = torch.autograd.grad(total, seen.weights, allow_unused=True)
        calls = [replace(call, weights=call.weights.detach()) for call in seen.calls]
        return [
            (call, torch.zeros_like(call.weights) if gradient is None else gradient)
            for call, gradient in zip(calls, found, strict=True)
        ]

    def readout(self) -> QueryWeights:
        """From which positions of the last layer the target is read: weights that sum to one."""
        return find_readout(self)

    def logits(self) -> Logits:
        """The model's output from the first place that is looked at, in a graph if there is one."""
        subject = self.subject
        first = min(target.first_place() for target in self.targets)
        return subject.run(self.inputs.arguments, first if subject.predicts_next else None)

    def score_with_graph(self, of: str) -> BatchScores:
        """As `score`, for use inside an open tap: what autograd needs is kept."""
        rows = zip(self.targets, self.logits(), strict=True)
        return torch.stack([target.score(row, of) for target, row in rows])
