"""The figures of a batch of texts: each measure of all scores, under each removal of tokens."""

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from attlas.auditing.plan import AuditPlan
from attlas.auditing.work.explained import CEILING, CONTROLS, SHUFFLED, Explained, ExplainedText
from attlas.auditing.work.where import WHERE, moved_rows, where_rows
from attlas.errors import AttlasError
from attlas.mathematics.rank_agreement import (
    kendall_matrix,
    rank_biased_overlap_matrix,
    top_overlap_matrix,
)
from attlas.measures import NOTHING, Case, Measure, sizes
from attlas.measures.support.walks import walks
from attlas.models.asking.question import Question
from attlas.progress import Tell, silent
from attlas.removing.ceilings import AIMS, best_orders
from attlas.removing.erasures import Erasures, Outcomes, Ways

SHARES = tuple(tenth / 10 for tenth in range(1, 10))  # of the tokens, where curves are read
TOP_SHARE = 0.2  # of the tokens, to count how many two methods have in common
RIGHT = "right"  # the "measure" that says whether the model is right on a text
COLUMNS = ("text", "method", "measure", "removal", "value", "shuffled")
_Row = tuple[Any, ...]


@dataclass(frozen=True, eq=False)
class Figures:
    """What measures say of a batch of texts, as the tables that are written to disk."""

    values: pd.DataFrame
    curves: pd.DataFrame
    agreement: pd.DataFrame
    scores: pd.DataFrame
    where: pd.DataFrame  # what the verdict rests on
    refused: Mapping[str, str]  # reasons by method or removal


def measure_batch(explained: Explained, plan: AuditPlan, tell: Tell = silent) -> Figures:
    """Apply every measure to the scores of a batch, one removal after the other."""
    rows = [row for text in explained.texts for row in _without_removal(text, plan)]
    curves: list[_Row] = []
    refused = dict(explained.refused)
    tell("shuffled attention")
    where: list[_Row] = [*moved_rows(explained, plan)]
    for how in plan.removals:
        texts = [each for each in explained.texts if _is_removed_from(each, how, plan)]
        if not texts:
            continue
        tell(f"tokens removed by {how}")
        try:
            removed = _Removed(explained.questions, how, texts, plan)
        except AttlasError as problem:
            refused[how] = " ".join(str(problem).split())
            continue
        for text in texts:
            own_rows, own_curves = removed.rows(text)
            rows += own_rows
            curves += own_curves
            if how in plan.verdict_removals:
                where += where_rows(text, how, removed.erasures)
            removed.erasures.forget(text.index)
    rows += _right(explained.texts, plan)
    return Figures(
        pd.DataFrame(rows, columns=list(COLUMNS)),
        pd.DataFrame(curves, columns=["text", "method", "measure", "removal", "share", "value"]),
        _agreement(explained.texts),
        _scores(explained.texts),
        pd.DataFrame(where, columns=list(WHERE)),
        refused,
    )


def _is_removed_from(text: ExplainedText, how: str, plan: AuditPlan) -> bool:
    if len(text.content) < 2:
        return False
    rank = int(plan.texts.ranks[text.number])
    return how in plan.verdict_removals or how in plan.settings.removals_on(rank)


def _without_removal(text: ExplainedText, plan: AuditPlan) -> Iterator[_Row]:
    """The figures of the measures that only compare scores with the marks of people."""
    if text.marks is None:
        return
    edited = bool(plan.texts.examples[text.number].fields.get("revised_text"))
    for measure in plan.settings.measures_of_scores:
        if measure.ways is not None or measure.value is None:
            continue
        if "edits" in measure.needs and not edited:
            continue
        drawn = text.shuffles(plan.settings.shuffles)
        chance = _mean([measure.value(each, NOTHING, NOTHING) for each in drawn])
        for name, case in text.cases.items():
            value = measure.value(case, NOTHING, NOTHING)
            yield text.number, name, measure.name, "", value, chance
        yield text.number, SHUFFLED, measure.name, "", chance, chance


def _right(texts: Sequence[ExplainedText], plan: AuditPlan) -> Iterator[_Row]:
    """Whether the model is right on each text, if the labels are known."""
    gold, labels = plan.texts.gold, plan.texts.subject.labels
    if gold is None:
        return
    for text in texts:
        is_right = text.question.targets[0].name == labels[gold[text.number]]
        yield text.number, "", RIGHT, "", float(is_right), float("nan")


class _Answered:
    """One text under one removal: its cases, and the model's answer to each set they remove."""

    def __init__(
        self, text: ExplainedText, erasures: Erasures, shuffles: int, measures: Sequence[Measure]
    ) -> None:
        self.text = text
        self.cases = text.cases
        self.drawn = text.shuffles(shuffles)
        self.whole = erasures.whole(text.index)
        self._outcomes: dict[tuple[int, Any], Outcomes] = {}
        shared = dict.fromkeys(each.ways for each in measures if each.ways and each.shares_ways)
        for choose in shared:
            outcomes = erasures.of(text.index, self.drawn[0].ways(choose))
            for case in [*self.cases.values(), *self.drawn]:
                self._outcomes[id(case), choose] = outcomes
        for choose in dict.fromkeys(each.ways for each in measures if each.ways):
            if choose not in shared:
                self._look_up(choose, erasures)

    def _look_up(self, choose: Callable[[Case], Ways], erasures: Erasures) -> None:
        """Look up all cases at once; measures that remove the same sets share the answers."""
        cases = [*self.cases.values(), *self.drawn]
        ways = [case.ways(choose) for case in cases]
        outcomes = erasures.of(self.text.index, np.concatenate(ways))
        ends = np.cumsum([len(each) for each in ways])[:-1]
        columns = (outcomes.log_probability, outcomes.chosen, outcomes.distribution)
        for case, *own in zip(cases, *(np.split(each, ends) for each in columns), strict=True):
            self._outcomes[id(case), choose] = Outcomes(*own)

    def value(self, measure: Measure, case: Case) -> float:
        """The figure of one case."""
        assert measure.value is not None
        return measure.value(case, self.whole, self.outcomes(measure, case))

    def curve(self, measure: Measure, case: Case) -> NDArray[np.float64]:
        """The figure of one case for each number of tokens."""
        assert measure.curve is not None
        return measure.curve(case, self.whole, self.outcomes(measure, case))

    def outcomes(self, measure: Measure, case: Case) -> Outcomes:
        """The model's answers without each of the sets of tokens that the measure removes."""
        return self._outcomes[id(case), measure.ways]


class _Removed:
    """The model's answers to the texts of a batch without tokens, and the best orders."""

    def __init__(
        self,
        questions: Sequence[Question],
        how: str,
        texts: Sequence[ExplainedText],
        plan: AuditPlan,
    ) -> None:
        self.how, self.settings, self.plan = how, plan.settings, plan
        self.erasures = Erasures(questions, how)
        self.erasures.ask({each.index: self._ways(each) for each in texts})
        sampled = [each.index for each in texts if self._has_curves(each)]
        aims = [each.name for each in self._removing if each.name in AIMS]
        self.best = best_orders(self.erasures, sampled, aims, sizes) if sampled else {}

    @property
    def _removing(self) -> list[Measure]:
        return [each for each in self.settings.measures_of_scores if each.ways is not None]

    def _has_curves(self, text: ExplainedText) -> bool:
        rank = int(self.plan.texts.ranks[text.number])
        return text.in_sample and self.how in self.settings.removals_on(rank)

    def measures(self, text: ExplainedText) -> list[Measure]:
        """The measures of a text: all if it is in the sample, else those of the verdict's walks."""
        has_curves = self._has_curves(text)
        return [each for each in self._removing if has_curves or each.shares_ways]

    def _ways(self, text: ExplainedText) -> Ways:
        """All sets of tokens to remove for the cases of a text, and the empty set."""
        drawn = text.shuffles(self.settings.shuffles)
        ways = [np.zeros((1, len(text.content)), dtype=bool)]
        if self.how in self.plan.verdict_removals:
            ways.append(walks(drawn[0]))
        for choose, shared in {
            each.ways: each.shares_ways for each in self.measures(text) if each.ways
        }.items():
            cases = drawn[:1] if shared else [*text.cases.values(), *drawn]
            ways += [case.ways(choose) for case in cases]
        return np.concatenate(ways)

    def rows(self, text: ExplainedText) -> tuple[list[_Row], list[_Row]]:
        """The figures of one text, and its curves."""
        measures = self.measures(text)
        answered = _Answered(text, self.erasures, self.settings.shuffles, measures)
        curves = self._curves(answered) if self._has_curves(text) else ()
        return [*self._figures(answered, measures)], [*curves]

    def _figures(self, answered: _Answered, measures: Sequence[Measure]) -> Iterator[_Row]:
        number = answered.text.number
        for measure in measures:
            values = {name: answered.value(measure, each) for name, each in answered.cases.items()}
            shared = np.nan
            if measure.by_rank:
                drawn = [answered.value(measure, each) for each in answered.drawn]
                shared = _mean(drawn)
                yield number, SHUFFLED, measure.name, self.how, shared, shared
            for name, value in values.items():
                chance = shared if measure.by_rank else self._chance(measure, answered, name)
                yield number, name, measure.name, self.how, value, chance
            if measure.name in self.best and self._has_curves(answered.text):
                best = self.best[measure.name][answered.text.index].value
                choose = max if measure.better == "higher" else min
                best = choose([best, *values.values(), *drawn])
                yield number, CEILING, measure.name, self.how, best, np.nan
            elif measure.ceiling is not None:
                case = answered.drawn[0]
                outcomes = answered.outcomes(measure, case)
                best = measure.ceiling(case, answered.whole, outcomes)
                yield number, CEILING, measure.name, self.how, best, np.nan

    def _chance(self, measure: Measure, answered: _Answered, name: str) -> float:
        """What a method's scores would reach by chance, for measures that use their size."""
        if measure.chance is not None:
            return measure.chance
        drawn = answered.text.shuffles(self.settings.shuffles, name)
        outcomes = answered.outcomes(measure, answered.cases[name])
        assert measure.value is not None
        return _mean([measure.value(each, answered.whole, outcomes) for each in drawn])

    def _curves(self, answered: _Answered) -> Iterator[_Row]:
        text = answered.text
        places = np.array(sizes(len(text.content))) / len(text.content)
        for measure in self._removing:
            if measure.curve is None or measure.name not in AIMS:
                continue
            lines = {name: answered.curve(measure, case) for name, case in answered.cases.items()}
            lines[SHUFFLED] = np.mean([answered.curve(measure, each) for each in answered.drawn], 0)
            lines[CEILING] = self._best_curve(measure, answered)
            for name, line in lines.items():
                values = np.interp(SHARES, places, line, right=np.nan)
                for share, value in zip(SHARES, values.tolist(), strict=True):
                    yield text.number, name, measure.name, self.how, share, value

    def _best_curve(self, measure: Measure, answered: _Answered) -> NDArray[np.float64]:
        """The curve of the best order that the search found."""
        index = answered.text.index
        order = self.best[measure.name][index].order
        scores = np.empty(len(order))
        scores[order] = -np.arange(float(len(order)))
        case = Case(scores, answered.text.seed)
        assert measure.curve is not None and measure.ways is not None
        outcomes = self.erasures.of(index, case.ways(measure.ways))
        return measure.curve(case, answered.whole, outcomes)


def _agreement(texts: Sequence[ExplainedText]) -> pd.DataFrame:
    """How similar the scores of every two methods are on each text."""
    rows = []
    for text in texts:
        names = [name for name in text.scores if name not in CONTROLS]
        if len(text.content) < 2 or len(names) < 2:
            continue
        scores = np.stack([text.scores[name] for name in names])
        top = max(1, round(TOP_SHARE * len(text.content)))
        matrices = (
            kendall_matrix(scores),
            top_overlap_matrix(scores, top),
            rank_biased_overlap_matrix(scores),
        )
        for one in range(len(names)):
            for other in range(one):
                values = [float(matrix[one, other]) for matrix in matrices]
                rows.append((text.number, names[one], names[other], *values))
    return pd.DataFrame(rows, columns=["text", "one", "other", "kendall", "top", "overlap"])


def _scores(texts: Sequence[ExplainedText]) -> pd.DataFrame:
    rows = [
        (text.number, name, scores.astype(np.float32).tolist())
        for text in texts
        for name, scores in text.scores.items()
        if name not in CONTROLS
    ]
    return pd.DataFrame(rows, columns=["text", "method", "scores"])


def _mean(values: Sequence[float]) -> float:
    known = [value for value in values if not np.isnan(value)]
    return float(np.mean(known)) if known else float("nan")
