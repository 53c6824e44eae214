"""Question: a subject, inputs and what is explained; the one thing that a method is handed."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import torch
from torch import Tensor

from attlas.models.borrow import borrowed
from attlas.models.branches import Branch, Branched, run_branches
from attlas.models.edits import Edit
from attlas.models.inputs import Inputs
from attlas.models.readout import last_stream, read_out
from attlas.models.tap import Call
from attlas.models.target import Target
from attlas.results import Site
from attlas.shapes import Attention, BatchScores, Logits, QueryWeights

if TYPE_CHECKING:
    from attlas.models.subject import Subject

Held = TypeVar("Held")


@dataclass(frozen=True, eq=False)
class Folded(Generic[Held]):
    """What was held of each attention that was read, and where the target is read from."""

    held: Sequence[Held]
    readout: QueryWeights


@dataclass(frozen=True, eq=False)
class Question:
    """A batch of inputs of equal length, and what is explained of each.

    `order` says where each row stood among the texts it was asked with; `maps` whether a method
    shall give its maps too, or scores alone.
    """

    subject: "Subject"
    inputs: Inputs
    targets: tuple[Target, ...]
    predictions: tuple[tuple[Mapping[str, Any], ...], ...]
    order: tuple[int, ...]
    found: tuple[Mapping[str, float], ...] = ()  # each target's logit and probability, as they are
    maps: bool = True

    def __len__(self) -> int:
        return len(self.targets)

    def answers(self) -> Iterator[tuple[int, Target, tuple[Mapping[str, Any], ...]]]:
        """For each row: its place among the texts, its target, the model's best choices."""
        return zip(self.order, self.targets, self.predictions, strict=True)

    def rows(self, rows: Sequence[int]) -> "Question":
        """The same question for some rows; a row may be taken more than once."""
        return replace(
            self,
            inputs=self.inputs.rows(rows),
            targets=tuple(self.targets[row] for row in rows),
            predictions=tuple(self.predictions[row] for row in rows),
            order=tuple(self.order[row] for row in rows),
            found=tuple(self.found[row] for row in rows) if self.found else (),
        )

    def parts(self, sites: Collection[Site]) -> list["Question"]:
        """The same question in batches small enough to hold the attention of these sites."""
        most = self.subject.rows_holding(self.inputs, sites)
        starts = range(0, len(self), most)
        return [self.rows(range(start, min(start + most, len(self)))) for start in starts]

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
        """The attention of every site, all of it held at once."""
        return self.subject.read(self.inputs)

    def fold(
        self, keep: Callable[[Call], Held], sites: Collection[Site] | None = None
    ) -> Folded[Held]:
        """Reduce the attention of these sites, or of all, as it passes, in one forward.

        `keep` gets each call and says what is held of it: no two layers are there at once unless
        it holds them. Sites that are not read are not spelled out.
        """
        with (
            torch.enable_grad(),
            self.subject.folding(keep, sites) as held,
            last_stream(self.subject) as stream,
        ):
            total = self.score_with_graph("logit").sum()
            (gradient,) = torch.autograd.grad(total, stream)
        return Folded(held, read_out(self.subject, gradient))

    def gradients(
        self,
        of: str,
        edits: Edit | Sequence[Edit] = (),
        sites: Collection[Site] | None = None,
    ) -> list[tuple[Call, Attention]]:
        """The attention of these sites, or of all, with the gradient of the target on it.

        Where the output does not depend on a site (an encoder that nothing reads), it is zero.
        """
        tap = self.subject.tap(edits, gradients=True, sites=sites)
        with torch.enable_grad(), tap as seen:
            total = self.score_with_graph(of).sum()
            found = torch.autograd.grad(total, seen.weights, allow_unused=True)
        return _pair(seen.calls, found)

    def gradients_and_readout(
        self, sites: Collection[Site] | None = None
    ) -> Folded[tuple[Call, Attention]]:
        """As `gradients` of the logit, and the readout from the same pass."""
        tap = self.subject.tap(gradients=True, sites=sites)
        with torch.enable_grad(), tap as seen, last_stream(self.subject) as stream:
            total = self.score_with_graph("logit").sum()
            *found, last = torch.autograd.grad(total, [*seen.weights, *stream], allow_unused=True)
        return Folded(_pair(seen.calls, found), read_out(self.subject, last))

    def branches(
        self, branches: Sequence[Branch], of: str, *, gradients: bool = False
    ) -> list[Branched]:
        """The target under many variants of the attention at many sites, in one forward pass.

        With `gradients`, also the gradient of each variant's score on its own attention.
        """
        return run_branches(self, branches, of, gradients=gradients)

    def readout(self) -> QueryWeights:
        """From which positions of the last layer the target is read: weights that sum to one."""
        return self.fold(lambda _: None, sites=()).readout

    def logits(self) -> Logits:
        """The model's output from the first place that is looked at, in a graph if there is one."""
        subject = self.subject
        first = min(target.first_place() for target in self.targets)
        return subject.run(self.inputs.arguments, first if subject.predicts_next else None)

    def score_with_graph(self, of: str) -> BatchScores:
        """As `score`, for use inside an open tap: what autograd needs is kept."""
        rows = zip(self.targets, self.logits(), strict=True)
        return torch.stack([target.score(row, of) for target, row in rows])


def _pair(
    calls: Sequence[Call], gradients: Sequence[Tensor | None]
) -> list[tuple[Call, Attention]]:
    """Each call with the gradient on its weights, zero where there is none."""
    detached = [replace(call, weights=call.weights.detach()) for call in calls]
    return [
        (call, torch.zeros_like(call.weights) if gradient is None else gradient)
        for call, gradient in zip(detached, gradients, strict=True)
    ]
