"""The model asked, once for all, what it says without all the sets of tokens that are wanted."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field

import numpy as np

from attlas.errors import AttlasError
from attlas.measures import Case, Measure, sizes
from attlas.models.asking.question import Question
from attlas.removing.ceilings import AIMS, Best, best_orders
from attlas.removing.erasures import Erasures, Ways


@dataclass(frozen=True, eq=False)
class Removal:
    """The answers without tokens that are removed in one way, and the best orders there are.

    Where tokens cannot be removed so, `refused` says why.
    """

    name: str
    erasures: Erasures | None = None
    refused: str = ""
    best: Mapping[str, Mapping[int, Best]] = field(default_factory=dict)  # by measure, by text

    def ceiling(self, measure: str, text: int) -> float:
        """The figure of the best order of a text; NaN for measures that have none."""
        found = self.best.get(measure, {})
        return found[text].value if text in found else np.nan


@dataclass(frozen=True, eq=False)
class Need:
    """Measures of some cases of one text."""

    text: int
    measures: Sequence[Measure]
    cases: Sequence[Case]

    def ways(self) -> Ways:
        """All sets of tokens that are wanted removed, and the text as it is."""
        width = len(self.cases[0])
        found = [each.ways(case) for each in self.measures if each.ways for case in self.cases]
        return np.concatenate([np.zeros((1, width), dtype=bool), *found])


def remove(questions: Sequence[Question], how: str, needs: Sequence[Need]) -> Removal:
    """Ask all that is needed, of all texts at once."""
    try:
        erasures = Erasures(questions, how)
    except AttlasError as problem:
        return Removal(how, refused=str(problem))
    wanted: dict[int, list[Ways]] = {}
    for need in needs:
        wanted.setdefault(need.text, []).append(need.ways())
    erasures.ask({text: np.concatenate(ways) for text, ways in wanted.items()})
    best: dict[str, dict[int, Best]] = {}
    for aim in AIMS:
        texts = {need.text for need in needs if aim in [each.name for each in need.measures]}
        best |= best_orders(erasures, sorted(texts), [aim], sizes)
    return Removal(how, erasures, best=best)
