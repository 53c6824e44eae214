"""Computing an explanation again: the same question, and the scores of its content tokens."""

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from typing import Any

import numpy as np
import torch

from attlas.errors import ModelError
from attlas.measures.support.measure import Occasion
from attlas.methods import METHODS, Method, Scored
from attlas.models.asking.ask import ask
from attlas.models.asking.filling import fill
from attlas.models.asking.memory import in_fitting_batches
from attlas.models.asking.question import Question
from attlas.models.encoding.request import Request
from attlas.models.encoding.target import Target
from attlas.removing.removal import removable
from attlas.results import Origin
from attlas.shapes import TokenScores, TokenVector

ASKED = ("target", "contrast", "position", "prefix", "chat", "truncate")


@dataclass(frozen=True)
class Recipe:
    """A method with its options."""

    method: Method
    options: Mapping[str, Any]

    def scores(self, question: Question) -> TokenScores:
        """The scores of every row."""
        return torch.cat([each.scores.detach().cpu() for each in self._scored(question)]).float()

    def _scored(self, question: Question) -> list[Scored]:
        """What the method gives, in batches that fit; no maps are made."""
        asked = replace(question.asking(question.targets), maps=False)

        def score(rows: Sequence[int]) -> Scored:
            return self.method.score(asked.rows(rows), self.options)

        most = question.subject.rows_at_once(question.inputs)
        starts = range(0, len(asked), most)
        too_large = f"{self.method.name} of one text, computed again"
        return [
            batch
            for start in starts
            for batch in in_fitting_batches(
                range(start, min(start + most, len(asked))), score, f"{too_large} does not fit"
            )
        ]

    def fill(self, questions: Sequence[Question]) -> Sequence[Question]:
        """The same questions in fewer batches, if the method and the model allow it."""
        return fill(questions) if self.method.fills else questions

    def content_scores(self, question: Question) -> Iterator[tuple[int, TokenVector]]:
        """For each row, its place among the texts and the scores of its content tokens."""
        yield from _of_content(question, self.scores(question))

    def reliable_scores(self, question: Question) -> Iterator[tuple[int, TokenVector]]:
        """Like `content_scores`, but an error if the method warns of the scores of any row."""
        scored = self._scored(question)
        warned = [warning for each in scored for warning in each.row_warnings if warning]
        if warned:
            raise ModelError(f"on some texts {warned[0]}")
        scores = torch.cat([each.scores.detach().cpu() for each in scored]).float()
        yield from _of_content(question, scores)


def _of_content(question: Question, scores: TokenScores) -> Iterator[tuple[int, TokenVector]]:
    for row, own in enumerate(scores):
        yield question.order[row], own[removable(question, row)].double().numpy()


def question_of(occasion: Occasion) -> tuple[Question, Recipe]:
    """The question that an explanation of ours answers, of one row, and its method."""
    origin = occasion.explanation.origin
    (question,) = ask(occasion.subject, [occasion.text], request_of(origin))
    return question, Recipe(METHODS[origin.method], origin.options)


def request_of(origin: Origin) -> Request:
    """The request that an explanation came from."""
    given = {name: origin.asked[name] for name in ASKED if name in origin.asked}
    if isinstance(given.get("target"), Mapping):
        given["target"] = Target.from_dict(given["target"])
    return Request(**given)


def mean_of(figures: Sequence[float]) -> float:
    """The mean of the figures that are not NaN; NaN if there are none."""
    known = np.array(figures)[~np.isnan(figures)]
    return float(known.mean()) if len(known) else np.nan
