"""Question: a batch of inputs and what to explain of each; functions put it to the model."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np

from attlas.models.asking.open_model import OpenModel
from attlas.models.encoding.images import as_seen
from attlas.models.encoding.inputs import Inputs
from attlas.models.encoding.target import Target
from attlas.results import Site


@dataclass(frozen=True, eq=False)
class Question:
    """A batch of inputs of equal length, and what to explain of each: the argument of a method.

    `order` has the place of each row among the user's texts. `maps` tells whether a method should
    return maps besides scores. One input may have several targets: what belongs to the input
    (attention, vectors) then has a batch of one, and what belongs to the targets a row each.
    """

    subject: OpenModel
    inputs: Inputs
    targets: tuple[Target, ...]
    predictions: tuple[tuple[Mapping[str, Any], ...], ...]
    order: tuple[int, ...]
    known_scores: tuple[Mapping[str, float], ...] = ()  # logit and probability of each target
    maps: bool = True

    def __len__(self) -> int:
        return len(self.targets)

    @property
    def is_shared(self) -> bool:
        """Whether several targets share one input."""
        return len(self.inputs) == 1 < len(self.targets)

    def answers(self) -> Iterator[tuple[int, Target, tuple[Mapping[str, Any], ...]]]:
        """For each row: its place among the texts, its target, and the model's best choices."""
        return zip(self.order, self.targets, self.predictions, strict=True)

    def pictures(self, row: int) -> Mapping[str, np.ndarray]:
        """The pictures of a row as the model sees them, by the segment of their patches."""
        pixels = self.inputs.arguments.get("pixel_values")
        if self.inputs.pictures or pixels is None:
            return self.inputs.pictures[row] if self.inputs.pictures else {}
        return {"image": as_seen(self.subject.image_processor, pixels[row])}

    def rows(self, rows: Sequence[int]) -> "Question":
        """The question of these rows; a row may occur more than once."""
        return replace(
            self,
            inputs=self.inputs if self.is_shared else self.inputs.rows(rows),
            targets=tuple(self.targets[row] for row in rows),
            predictions=tuple(self.predictions[row] for row in rows),
            order=tuple(self.order[row] for row in rows),
            known_scores=tuple(self.known_scores[row] for row in rows) if self.known_scores else (),
        )

    def batches_holding(self, sites: Collection[Site]) -> list["Question"]:
        """The question in batches small enough to hold the attention of these sites."""
        most = self.subject.rows_holding(self.inputs, sites)
        starts = range(0, len(self), most)
        return [self.rows(range(start, min(start + most, len(self)))) for start in starts]

    def about(self, inputs: Inputs) -> "Question":
        """The same targets for other inputs."""
        return replace(self, inputs=inputs)

    def copied(self) -> "Question":
        """The same question with a copy of the input for each target."""
        return self.about(self.inputs.rows([0] * len(self))) if self.is_shared else self
