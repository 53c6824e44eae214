"""Question: a batch of inputs and what to explain of each; functions put it to the model."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from attlas.models.asking.open_model import OpenModel
from attlas.models.asking.resolve import OF_CLASSES, TargetCase, resolve_each
from attlas.models.encoding.images import as_seen
from attlas.models.encoding.inputs import Inputs
from attlas.models.encoding.request import Request
from attlas.models.encoding.target import QUANTITIES, Prediction, Target, score_each
from attlas.models.facts.evaluation_mode import evaluation_mode
from attlas.results import Site
from attlas.shapes import Logits


@dataclass(eq=False)
class Asked:
    """What is asked about one input; the rest is None or empty until the model has run on it."""

    request: Request = Request()  # noqa: RUF009  it is frozen
    target: Target | None = None
    prediction: Prediction = ()  # the model's best choices
    scores: Mapping[str, float] | None = None  # logit and probability of the target
    notes: tuple[str, ...] = ()  # what the user left open


@dataclass(frozen=True, eq=False)
class Question:
    """A batch of inputs of equal length, and what to explain of each: the argument of a method.

    What a user leaves open, such as the target, is known once the model has run. A question that
    was only posed learns it from the first pass over it (`own_scores_in_graph`); if it is needed
    before, the model runs for it. `order` has the place of each row among the user's texts. `maps`
    tells whether a method should return maps besides scores. One input may have several targets:
    what belongs to the input (attention, vectors) then has a batch of one, and what belongs to the
    targets a row each.
    """

    subject: OpenModel
    inputs: Inputs
    asked: tuple[Asked, ...]
    order: tuple[int, ...]
    maps: bool = True

    def __len__(self) -> int:
        return len(self.asked)

    @property
    def is_shared(self) -> bool:
        """Whether several targets share one input."""
        return len(self.inputs) == 1 < len(self.asked)

    @property
    def is_answered(self) -> bool:
        """Whether the target of each row is known."""
        return all(each.target is not None for each in self.asked)

    @property
    def is_of_best(self) -> bool:
        """Whether each target will be the class that the model is found to predict."""
        subject = self.subject
        if self.is_answered or subject.task is None or subject.task.name not in OF_CLASSES:
            return False
        return subject.link != "identity" and all(each.request.is_open for each in self.asked)

    @property
    def answered(self) -> tuple[Asked, ...]:
        """What is asked, with the target of each row: the model runs if it has not yet."""
        if not self.is_answered:
            look(self.subject, self.inputs, self.asked)
        return self.asked

    @property
    def targets(self) -> tuple[Target, ...]:
        """What to explain of each row."""
        return tuple(each.target for each in self.answered if each.target is not None)

    @property
    def predictions(self) -> tuple[tuple[Mapping[str, Any], ...], ...]:
        """The model's best choices for each row."""
        return tuple(each.prediction for each in self.answered)

    @property
    def known_scores(self) -> tuple[Mapping[str, float], ...]:
        """The logit and the probability of each target, or nothing where they were not computed."""
        known = [each.scores for each in self.answered]
        found = tuple(scores for scores in known if scores is not None)
        return found if len(found) == len(known) else ()

    def notes(self, row: int) -> tuple[str, ...]:
        """What to tell the user of a row's encoding and target."""
        own = self.inputs.notes[0 if self.is_shared else row]
        return (*own, *self.asked[row].notes)

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
            asked=tuple(self.asked[row] for row in rows),
            order=tuple(self.order[row] for row in rows),
        )

    def batches_holding(self, sites: Collection[Site]) -> list["Question"]:
        """The question in batches small enough to hold the attention of these sites."""
        return self.batches_of(self.subject.rows_holding(self.inputs, sites, len(self)))

    def batches_of(self, most: int) -> list["Question"]:
        """The question in batches of at most so many rows."""
        if len(self) <= most:
            return [self]
        starts = range(0, len(self), most)
        return [self.rows(range(start, min(start + most, len(self)))) for start in starts]

    def asking(self, targets: Sequence[Target]) -> "Question":
        """The same inputs with other targets; one input may get several."""
        best = self.predictions
        same = len(targets) == len(self)
        asked = tuple(
            Asked(target=target, prediction=best[row] if same else ())
            for row, target in enumerate(targets)
        )
        return replace(self, asked=asked, order=self.order if same else self.order[:1] * len(asked))

    def about(self, inputs: Inputs) -> "Question":
        """The same targets for other inputs."""
        return replace(self.asking(self.targets), inputs=inputs)

    def copied(self) -> "Question":
        """The same question with a copy of the input for each target."""
        return replace(self, inputs=self.inputs.rows([0] * len(self))) if self.is_shared else self


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
        logits = subject.run_unchecked(inputs.arguments, first_places(subject, inputs, asked))
    learn(subject, inputs, asked, logits)


def learn(subject: OpenModel, inputs: Inputs, asked: Sequence[Asked], logits: Logits) -> None:
    """Find the target of each input from the output of the unchanged model, which is checked."""
    table = logits.detach().cpu()  # each row is looked at by itself
    subject.check_finite(table)
    chains = inputs.chains or ((),) * len(inputs)
    cases = [
        TargetCase(subject, each.request, tokens, row, text, chain)
        for each, tokens, row, text, chain in zip(
            asked, inputs.tokens, table, inputs.texts, chains, strict=True
        )
    ]
    resolved = resolve_each(cases, table)
    targets = [target for target, _, _ in resolved]
    columns = {of: score_each(targets, table, of).tolist() for of in QUANTITIES}
    for row, (each, (target, prediction, notes)) in enumerate(zip(asked, resolved, strict=True)):
        each.target, each.prediction, each.notes = target, prediction, notes
        each.scores = {of: column[row] for of, column in columns.items()}
