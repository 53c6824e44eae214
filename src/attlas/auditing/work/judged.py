"""The figures of a part of the texts: every case by every measure, tokens removed in every way."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from attlas.auditing.settings import Settings
from attlas.auditing.texts import Texts
from attlas.auditing.work.cases import CEILING, CONTROLS, SHUFFLED, Explained, Judged
from attlas.errors import AttlasError
from attlas.mathematics.rank_agreement import (
    kendall_matrix,
    rank_biased_overlap_matrix,
    top_overlap_matrix,
)
from attlas.measures import NOTHING, Case, Measure, sizes
from attlas.models.asking.question import Question
from attlas.progress import Tell, silent
from attlas.removing.ceilings import AIMS, best_orders
from attlas.removing.erasures import Erasures, Outcomes, Ways

SHARES = tuple(tenth / 10 for tenth in range(1, 10))  # of the tokens, where curves are read
TOP_SHARE = 0.2  # of the tokens, that two methods may have in common
COLUMNS = ("text", "method", "measure", "removal", "value", "shuffled")


@dataclass(frozen=True, eq=False)
class Figures:
    """The tables of a part."""

    values: pd.DataFrame
    curves: pd.DataFrame
    agreement: pd.DataFrame
    scores: pd.DataFrame
    refused: Mapping[str, str]


def judge_part(
    explained: Explained, texts: Texts, settings: Settings, tell: Tell = silent
) -> Figures:
    """Judge all that a part has, one removal after the other."""
    rows: list[tuple[Any, ...]] = []
    curves: list[tuple[Any, ...]] = []
    refused = dict(explained.refused)
    measures = settings.found(asking=False)
    for each in explained.texts:
        edited = bool(texts.examples[each.number].fields.get("revised_text"))
        fitting = [measure for measure in measures if edited or "edits" not in measure.needs]
        rows += _without_model(each, fitting, settings)
    removing = [each for each in measures if each.ways is not None]
    for how in settings.removals:
        chosen = [
            each
            for each in explained.texts
            if how in settings.removals_on(int(texts.ranks[each.number])) and len(each.content) > 1
        ]
        if not chosen or how in refused:
            continue
        tell(f"tokens removed by {how}")
        try:
            removed = _Removed(explained.questions, how, chosen, removing, settings)
        except AttlasError as problem:
            refused[how] = " ".join(str(problem).split())
            continue
        for each in chosen:
            own, lines = removed.rows(each)
            rows += own
            curves += lines
    return Figures(
        pd.DataFrame(rows, columns=list(COLUMNS)),
        pd.DataFrame(curves, columns=["text", "method", "measure", "removal", "share", "value"]),
        _agreement(explained.texts),
        _scores(explained.texts),
        refused,
    )


def _without_model(
    judged: Judged, measures: Sequence[Measure], settings: Settings
) -> Iterator[tuple[Any, ...]]:
    """The figures of measures that need marked tokens alone."""
    if judged.marks is None:
        return
    for measure in measures:
        if measure.ways is not None or measure.value is None:
            continue
        drawn = judged.shuffles(settings.shuffles)
        chance = _mean([measure.value(each, NOTHING, NOTHING) for each in drawn])
        for name, case in judged.cases.items():
            value = measure.value(case, NOTHING, NOTHING)
            yield judged.number, name, measure.name, "", value, chance
        yield judged.number, SHUFFLED, measure.name, "", chance, chance


class _Answered:
    """One text under one removal: its cases, and what the model says of what each wants removed."""

    def __init__(
        self, judged: Judged, erasures: Erasures, shuffles: int, measures: Sequence[Measure]
    ) -> None:
        self.judged = judged
        self.cases = judged.cases
        self.drawn = judged.shuffles(shuffles)
        self.whole = erasures.whole(judged.local)
        self._known: dict[tuple[int, Any], Outcomes] = {}
        for choose in dict.fromkeys(each.ways for each in measures if each.ways):
            self._look_up(choose, erasures)

    def _look_up(self, choose: Callable[[Case], Ways], erasures: Erasures) -> None:
        """Several measures want the same removed: it is looked up once, of all cases together."""
        cases = [*self.cases.values(), *self.drawn]
        ways = [case.ways(choose) for case in cases]
        found = erasures.of(self.judged.local, np.concatenate(ways))
        ends = np.cumsum([len(each) for each in ways])[:-1]
        parts = zip(
            np.split(found.log_probability, ends), np.split(found.chosen, ends), strict=True
        )
        for case, part in zip(cases, parts, strict=True):
            self._known[id(case), choose] = Outcomes(*part)

    def value(self, measure: Measure, case: Case) -> float:
        """The figure of one case."""
        assert measure.value is not None
        return measure.value(case, self.whole, self.outcomes(measure, case))

    def curve(self, measure: Measure, case: Case) -> NDArray[np.float64]:
        """Its figure at each size."""
        assert measure.curve is not None
        return measure.curve(case, self.whole, self.outcomes(measure, case))

    def outcomes(self, measure: Measure, case: Case) -> Outcomes:
        """What the model says without each of the sets that the measure wants removed."""
        return self._known[id(case), measure.ways]


class _Removed:
    """The answers of the model to the texts of a part without tokens, and the best orders."""

    def __init__(
        self,
        questions: Sequence[Question],
        how: str,
        texts: Sequence[Judged],
        measures: Sequence[Measure],
        settings: Settings,
    ) -> None:
        self.how, self.measures, self.settings = how, measures, settings
        self.erasures = Erasures(questions, how)
        self.erasures.ask({each.local: self._ways(each) for each in texts})
        drawn = [each.local for each in texts if each.drawn]
        aims = [each.name for each in measures if each.name in AIMS]
        self.best = best_orders(self.erasures, drawn, aims, sizes)

    def _ways(self, judged: Judged) -> Ways:
        """All sets of tokens that the cases of a text want removed."""
        cases = [*judged.cases.values(), *judged.shuffles(self.settings.shuffles)]
        width = len(judged.content)
        asked = dict.fromkeys(each.ways for each in self.measures if each.ways)
        found = [case.ways(ways) for ways in asked for case in cases]
        return np.concatenate([np.zeros((1, width), dtype=bool), *found])

    def rows(self, judged: Judged) -> tuple[list[tuple[Any, ...]], list[tuple[Any, ...]]]:
        """The figures of one text, and its curves."""
        answered = _Answered(judged, self.erasures, self.settings.shuffles, self.measures)
        return [*self._figures(answered)], [*self._curves(answered)]

    def _figures(self, answered: _Answered) -> Iterator[tuple[Any, ...]]:
        number = answered.judged.number
        for measure in self.measures:
            shared = _mean([answered.value(measure, each) for each in answered.drawn])
            for name, case in answered.cases.items():
                chance = shared if measure.by_rank else self._chance(measure, answered, name)
                value = answered.value(measure, case)
                yield number, name, measure.name, self.how, value, chance
            if measure.by_rank:
                yield number, SHUFFLED, measure.name, self.how, shared, shared
        if answered.judged.drawn:
            for aim, best in self.best.items():
                yield number, CEILING, aim, self.how, best[answered.judged.local].value, np.nan

    def _chance(self, measure: Measure, answered: _Answered, name: str) -> float:
        """The mean over shuffles of a case's own scores, where more than their order counts."""
        drawn = answered.judged.shuffles(self.settings.shuffles, name)
        answers = answered.outcomes(measure, answered.cases[name])
        assert measure.value is not None
        return _mean([measure.value(each, answered.whole, answers) for each in drawn])

    def _curves(self, answered: _Answered) -> Iterator[tuple[Any, ...]]:
        judged = answered.judged
        places = np.array(sizes(len(judged.content))) / len(judged.content)
        for measure in self.measures:
            if measure.curve is None or measure.name not in AIMS:
                continue
            lines = {name: answered.curve(measure, case) for name, case in answered.cases.items()}
            lines[SHUFFLED] = np.mean([answered.curve(measure, each) for each in answered.drawn], 0)
            if judged.drawn:
                lines[CEILING] = self._best_curve(measure, answered)
            for name, line in lines.items():
                values = np.interp(SHARES, places, line, right=np.nan)
                for share, value in zip(SHARES, values.tolist(), strict=True):
                    yield judged.number, name, measure.name, self.how, share, value

    def _best_curve(self, measure: Measure, answered: _Answered) -> NDArray[np.float64]:
        """That of the best order there is."""
        local = answered.judged.local
        order = self.best[measure.name][local].order
        scores = np.empty(len(order))
        scores[order] = -np.arange(float(len(order)))
        case = Case(scores, answered.judged.seed)
        assert measure.curve is not None and measure.ways is not None
        outcomes = self.erasures.of(local, case.ways(measure.ways))
        return measure.curve(case, answered.whole, outcomes)


def _agreement(texts: Sequence[Judged]) -> pd.DataFrame:
    """How alike every two methods are on each text."""
    rows = []
    for each in texts:
        names = [name for name in each.scores if name not in CONTROLS]
        if len(each.content) < 2 or len(names) < 2:
            continue
        scores = np.stack([each.scores[name] for name in names])
        top = max(1, round(TOP_SHARE * len(each.content)))
        matrices = (
            kendall_matrix(scores),
            top_overlap_matrix(scores, top),
            rank_biased_overlap_matrix(scores),
        )
        for one in range(len(names)):
            for other in range(one):
                found = [float(matrix[one, other]) for matrix in matrices]
                rows.append((each.number, names[one], names[other], *found))
    return pd.DataFrame(rows, columns=["text", "one", "other", "kendall", "top", "overlap"])


def _scores(texts: Sequence[Judged]) -> pd.DataFrame:
    rows = [
        (each.number, name, scores.astype(np.float32).tolist())
        for each in texts
        for name, scores in each.scores.items()
        if name not in CONTROLS
    ]
    return pd.DataFrame(rows, columns=["text", "method", "scores"])


def _mean(values: Sequence[float]) -> float:
    known = [value for value in values if not np.isnan(value)]
    return float(np.mean(known)) if known else float("nan")
