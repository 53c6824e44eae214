"""The figures of the measures that remove tokens, of a batch of texts under one removal."""

from collections.abc import Callable, Iterator, Sequence
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attlas.auditing.plan import AuditPlan
from attlas.auditing.work.drafts import Drafts
from attlas.auditing.work.explained import CEILING, SHUFFLED, ExplainedText
from attlas.measures import Case, Measure, sizes
from attlas.measures.support.walks import walks
from attlas.models.asking.question import Question
from attlas.removing.ceilings import AIMS, best_orders
from attlas.removing.erasures import Erasures, Outcomes, Ways

SHARES = tuple(tenth / 10 for tenth in range(1, 10))  # of the tokens, where curves are read
_Row = tuple[Any, ...]


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


class RemovedTokens:
    """The model's answers to the texts of a batch without tokens, and the best orders."""

    def __init__(
        self,
        questions: Sequence[Question],
        how: str,
        texts: Sequence[ExplainedText],
        plan: AuditPlan,
        drafts: Drafts,
    ) -> None:
        self.how, self.settings, self.plan = how, plan.settings, plan
        self.erasures = Erasures(questions, how)
        drafts.ask(self.erasures, {each.index: self._ways(each) for each in texts})
        sampled = [each.index for each in texts if self._has_curves(each)]
        aims = [each.name for each in self._removing if each.name in AIMS]
        self.best = best_orders(self.erasures, sampled, aims, sizes) if sampled else {}
        drafts.keep(self.erasures)

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
                shared = mean_of_known(drawn)
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
            case = answered.cases[name]
            return measure.chance(case, answered.whole, answered.outcomes(measure, case))
        drawn = answered.text.shuffles(self.settings.shuffles, name)
        outcomes = answered.outcomes(measure, answered.cases[name])
        assert measure.value is not None
        return mean_of_known([measure.value(each, answered.whole, outcomes) for each in drawn])

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


def mean_of_known(values: Sequence[float]) -> float:
    """The mean of the values that are known; NaN if none is."""
    known = [value for value in values if not np.isnan(value)]
    return float(np.mean(known)) if known else float("nan")
