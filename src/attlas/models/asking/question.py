"""Question: a subject, inputs and what is explained; the one thing that a method is handed."""

from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any, Generic, TypeVar

import numpy as np
import torch
from torch import Tensor

from attlas.models.asking.many_targets import apart, differentiate_each, reached
from attlas.models.asking.readout import last_stream, read_out
from attlas.models.branching.branches import Branch, Branched, run_branches
from attlas.models.encoding.images import as_seen
from attlas.models.encoding.inputs import Inputs
from attlas.models.encoding.target import Target, score_each
from attlas.models.facts.freezing import borrowed
from attlas.models.states.block_states import block_states
from attlas.models.states.embeddings import Entered, entered_vectors, entering
from attlas.models.tap.edits import Edit
from attlas.models.tap.tap import Call
from attlas.results import Site
from attlas.shapes import Attention, BatchScores, Hidden, Logits, QueryWeights, StreamVectors, Table

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
    shall give its maps too, or scores alone. One input may have several targets: then what is of
    the input (attention, vectors) has a batch of one, and what is of the targets a row for each.
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

    @property
    def is_shared(self) -> bool:
        """Whether all targets are of one input."""
        return len(self.inputs) == 1 < len(self.targets)

    def answers(self) -> Iterator[tuple[int, Target, tuple[Mapping[str, Any], ...]]]:
        """For each row: its place among the texts, its target, the model's best choices."""
        return zip(self.order, self.targets, self.predictions, strict=True)

    def picture(self, row: int) -> np.ndarray | None:
        """The picture of a row as the model sees it, where it sees one."""
        pixels = self.inputs.arguments.get("pixel_values")
        return None if pixels is None else as_seen(self.subject.image_processor, pixels[row])

    def rows(self, rows: Sequence[int]) -> "Question":
        """The same question for some rows; a row may be taken more than once."""
        return replace(
            self,
            inputs=self.inputs if self.is_shared else self.inputs.rows(rows),
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

    def copied(self) -> "Question":
        """The same question with a copy of the input for each target."""
        return self.about(self.inputs.rows([0] * len(self))) if self.is_shared else self

    def score(self, of: str, edits: Edit | Sequence[Edit] = ()) -> BatchScores:
        """The target of each row, as a `logit` or a `probability`, with the attention so edited."""
        with torch.no_grad():
            if not edits:
                with borrowed(self.subject.model):
                    return self.score_with_graph(of)
            with self.subject.tap(edits):
                return self.score_with_graph(of)

    def reached(self) -> Hidden:
        """Which tokens each target can depend on: none that its decoder comes to later."""
        return reached(self.inputs, self.targets).to(self.subject.device)

    def table(self, of: str) -> Table:
        """Every target on every input, however many there are of each."""
        with torch.no_grad(), borrowed(self.subject.model):
            logits = self.logits()
            return torch.stack([target.score(logits, of) for target in self.targets], dim=1)

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
            found = torch.autograd.grad(total, stream, materialize_grads=True)
        return Folded(held, self._read_out(*found))

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
        with torch.enable_grad(), tap as seen, last_stream(self.subject) as stream:
            found = self._differentiate(self.score_with_graph(of), seen.weights, stream)
        return _pair(seen.calls, found)

    def gradients_and_readout(
        self, sites: Collection[Site] | None = None
    ) -> Folded[tuple[Call, Attention]]:
        """As `gradients` of the logit, and the readout from the same pass."""
        tap = self.subject.tap(gradients=True, sites=sites)
        with torch.enable_grad(), tap as seen, last_stream(self.subject) as stream:
            scores = self.score_with_graph("logit")
            if self.is_shared:
                last = torch.autograd.grad(scores.sum(), stream, retain_graph=True)
                found = self._differentiate(scores, seen.weights, stream)
            else:
                wanted = [*seen.weights, *stream]
                both = torch.autograd.grad(scores.sum(), wanted, materialize_grads=True)
                found, last = both[: len(seen.weights)], both[len(seen.weights) :]
        return Folded(_pair(seen.calls, found), self._read_out(*last))

    def state_gradients(self, of: str) -> list[tuple[Call, Tensor, Tensor]]:
        """Of each self-attention: the call, what its block was handed, and the gradient on that.

        States and gradients are `[batch, query, feature]`.
        """
        places = [place for place in self.subject.places if place[0].kind != "cross"]
        sites = [site for site, _ in places]
        with (
            torch.enable_grad(),
            self.subject.tap(sites=sites) as seen,
            block_states(self.subject, places) as states,
            last_stream(self.subject) as stream,
        ):
            found = self._differentiate(self.score_with_graph(of), states, stream)
        calls = [replace(call, weights=call.weights.detach()) for call in seen.calls]
        return [
            (call, state.detach(), torch.zeros_like(state) if gradient is None else gradient)
            for call, state, gradient in zip(calls, states, found, strict=True)
        ]

    def embeddings(self) -> list[StreamVectors]:
        """The vectors that the tokens of each stream enter the model as."""
        return entered_vectors(self)

    def embedding_gradients(
        self, of: str, values: Sequence[StreamVectors] | None = None
    ) -> tuple[list[Entered], BatchScores]:
        """The vectors of each stream with the gradient of the target on them, and the target.

        With `values`, the streams enter the model as these instead.
        """
        with (
            torch.enable_grad(),
            borrowed(self.subject.model),
            entering(self.subject, self.inputs, values) as entrance,
            last_stream(self.subject) as stream,
        ):
            scores = self.score_with_graph(of)
            found = self._differentiate(scores, entrance.leaves, stream)
        return entrance.entered(found), scores.detach()

    def branches(
        self,
        branches: Sequence[Branch],
        of: str,
        *,
        gradients: bool = False,
        memory: int | None = None,
    ) -> list[Branched]:
        """The target under many variants of the attention at many sites, in one forward pass.

        With `gradients`, also the gradient of each variant's score on its own attention. Where it
        would hold more than is free, or than `memory` bytes, it is more passes.
        """
        return run_branches(self, branches, of, gradients=gradients, memory=memory)

    def readout(self) -> QueryWeights:
        """From which positions of the last layer the target is read: weights that sum to one."""
        return self.fold(lambda _: None, sites=()).readout

    def _read_out(self, *gradients: Tensor) -> QueryWeights:
        """From which positions each target is read, by its gradient on the last stream."""
        if not self.is_shared:
            return read_out(self.subject, *gradients)
        return read_out(self.subject, torch.cat(list(apart(gradients[0], self.targets))))

    def _differentiate(
        self, scores: Tensor, leaves: Sequence[Tensor], stream: Sequence[Tensor]
    ) -> Sequence[Tensor | None]:
        """The gradient of each row's score on each leaf."""
        if self.is_shared:
            return differentiate_each(scores, leaves, stream[0], self.targets)
        return torch.autograd.grad(scores.sum(), leaves, allow_unused=True)

    def logits(self) -> Logits:
        """The model's output from the first place that is looked at, in a graph if there is one."""
        subject = self.subject
        first = min(target.first_place() for target in self.targets)
        return subject.run(self.inputs.arguments, first if subject.predicts_next else None)

    def score_with_graph(self, of: str) -> BatchScores:
        """As `score`, for use inside an open tap: what autograd needs is kept."""
        return score_each(self.targets, self.logits().expand(len(self), -1, -1), of)


def _pair(
    calls: Sequence[Call], gradients: Sequence[Tensor | None]
) -> list[tuple[Call, Attention]]:
    """Each call with the gradient on its weights, zero where there is none."""
    detached = [replace(call, weights=call.weights.detach()) for call in calls]
    return [
        (call, torch.zeros_like(call.weights) if gradient is None else gradient)
        for call, gradient in zip(detached, gradients, strict=True)
    ]
