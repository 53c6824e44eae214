"""The model's answers without tokens: all sets that measures remove, asked at once."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from attlas.errors import AttlasError
from attlas.measures import Case, Measure, sizes
from attlas.models.asking.question import Question
from attlas.removing.ceilings import AIMS, Best, best_orders
from attlas.removing.erasures import Erasures, Ways


@dataclass(frozen=True, eq=False)
class RemovalAnswers:
    """The answers without tokens that are removed in one way, and the best orders.

    If tokens cannot be removed in this way, `refused` says why.
    """

    name: str
    erasures: Erasures | None = None
    refused: str = ""
    best: Mapping[str, Mapping[int, Best]] = field(default_factory=dict)  # by measure, by text

    def ceiling(self, measure: str, text: int) -> float:
        """The figure of the best order that a search found; NaN for measures without one."""
        best = self.best.get(measure, {})
        return best[text].value if text in best else np.nan


@dataclass(frozen=True, eq=False)
class TextMeasures:
    """The measures that are applied to some cases of one text."""

    text: int
    measures: Sequence[Measure]
    cases: Sequence[Case]

    def ways(self) -> Ways:
        """All sets of tokens that the measures remove, and the empty set."""
        ways = [np.zeros((1, len(self.cases[0])), dtype=bool)]
        shared = {each.ways: each.shares_ways for each in self.measures if each.ways}
        for choose, once in shared.items():
            ways += [case.ways(choose) for case in (self.cases[:1] if once else self.cases)]
        return np.concatenate(ways)


def ask_without_tokens(
    questions: Sequence[Question], how: str, texts: Sequence[TextMeasures]
) -> RemovalAnswers:
    """Ask the model about all texts without all sets of tokens."""
    try:
        erasures = Erasures(questions, how)
    except AttlasError as problem:
        return RemovalAnswers(how, refused=str(problem))
    sets: dict[int, list[Ways]] = {}
    for each in texts:
        sets.setdefault(each.text, []).append(each.ways())
    erasures.ask({text: np.concatenate(ways) for text, ways in sets.items()})
    best: dict[str, dict[int, Best]] = {}
    for aim in AIMS:
        numbers = {each.text for each in texts if aim in [one.name for one in each.measures]}
        best |= best_orders(erasures, sorted(numbers), [aim], sizes)
    return RemovalAnswers(how, erasures, best=best)
