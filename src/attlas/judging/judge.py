"""The verb `judge`: measures held to one explanation, or to many, in the caller's order."""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass
from typing import Any

import torch

from attlas.errors import UnknownNameError, UsageError
from attlas.judging.foreign import is_one
from attlas.judging.measuring import find, shuffled, why_not
from attlas.judging.removals import Need, remove
from attlas.judging.trials import Trial, Wanted, trial, wanted
from attlas.measures import MEASURES, Measure
from attlas.models.asking.question import Question
from attlas.models.subject import Subject, check_subject
from attlas.removing.removal import REMOVALS
from attlas.results.judgement import Judgement

REMOVED_BY = ("delete", "mask")
SHUFFLES = 99


@dataclass(frozen=True)
class Settings:
    """By what an explanation is judged."""

    measures: tuple[Measure, ...] | None  # None: all that are cheap and can be applied
    removal: tuple[str, ...]
    shuffles: int
    seed: int

    def chosen(self, trial: Trial) -> list[Measure]:
        """The measures that a trial gets."""
        if self.measures is not None:
            return list(self.measures)
        return [each for each in MEASURES if each.cost == "cheap" and not why_not(each, trial)]

    def told(self, trial: Trial) -> dict[str, Any]:
        """What a judgement says of how it came about."""
        found = {"removal": self.removal, "shuffles": self.shuffles, "seed": self.seed}
        return found if trial.case.marks is None else {**found, "marks": trial.case.marks.tolist()}


def judge(
    subject: Subject,
    explanations: Any,
    measures: Sequence[str] | str | None = None,
    *,
    text: Any = None,
    target: Any = None,
    marks: Any = None,
    removal: Sequence[str] | str = REMOVED_BY,
    shuffles: int = SHUFFLES,
    seed: int = 0,
) -> Any:
    """Judge an explanation by measures: a row for each, and for each way to remove tokens.

    A list of explanations gives a list of judgements in the same order. An explanation is what
    `explain` gave, or scores from elsewhere: a list of numbers, one for each content token (or for
    each token, special ones included), a list of (word, score), a pair (tokens, scores), or what
    SHAP, inseq or captum made. Scores from elsewhere need the `text` they are of, unless they are
    SHAP's or inseq's, and speak for the `target`: the model's prediction if it is None. `marks` say
    which tokens people marked: spans of characters, one mark a token, or an Example.

    `measures` are names; None takes all that are cheap and can be applied. Each figure stands
    beside its mean over `shuffles` of the same scores, with the share of them that did as well.
    """
    check_subject(subject, "judge")
    settings = _settings(measures, removal, shuffles, seed)
    alone = is_one(explanations)
    given = [explanations] if alone else list(explanations)
    texts, all_marks = (
        _each(value, given, alone, name) for value, name in ((text, "text"), (marks, "marks"))
    )
    asked = [
        wanted(subject, each, own_text, target, own_marks)
        for each, own_text, own_marks in zip(given, texts, all_marks, strict=True)
    ]
    with torch.inference_mode(False):  # gradients may be needed, whatever the caller switched off
        found = _judge_all(subject, asked, settings)
    return found[0] if alone else found


def _settings(measures: Any, removal: Any, shuffles: int, seed: int) -> Settings:
    names = [measures] if isinstance(measures, str) else measures
    ways = (removal,) if isinstance(removal, str) else tuple(removal)
    for how in ways:
        if how not in REMOVALS:
            raise UnknownNameError("removal", how, REMOVALS)
    if not ways:
        raise UsageError(f"removal names at least one of {', '.join(REMOVALS)}")
    if shuffles < 0:
        raise UsageError(f"shuffles is 0 or more, not {shuffles}")
    chosen = None if names is None else tuple(MEASURES[name] for name in names)
    return Settings(chosen, ways, shuffles, seed)


def _each(value: Any, given: Sequence[Any], alone: bool, name: str) -> list[Any]:
    """What belongs to each explanation: of many, a list says it of each."""
    if alone:
        return [value]
    if not isinstance(value, list):
        return [value] * len(given)
    if len(value) != len(given):
        raise UsageError(f"{len(given)} explanations but {len(value)} in {name}: one for each")
    return value


def _judge_all(subject: Subject, asked: Sequence[Wanted], settings: Settings) -> list[Judgement]:
    found: dict[int, Judgement] = {}
    groups: dict[str, list[int]] = {}
    for index, each in enumerate(asked):
        groups.setdefault(repr(each.request), []).append(index)
    for group in groups.values():
        questions, trials = _trials(subject, [asked[index] for index in group], settings.seed)
        judged = _judge_group(questions, trials, settings)
        found.update(zip(group, judged, strict=True))
    return [found[index] for index in range(len(asked))]


def _trials(
    subject: Subject, asked: Sequence[Wanted], seed: int
) -> tuple[list[Question], list[Trial]]:
    """The questions about the texts, each text once, and what is judged on each."""
    texts = {repr(each.text): each.text for each in asked}
    numbers = {key: number for number, key in enumerate(texts)}
    questions = subject.ask(list(texts.values()), asked[0].request)
    rows = {
        number: question.rows([row])
        for question in questions
        for row, number in enumerate(question.order)
    }
    trials = []
    for each in asked:
        number = numbers[repr(each.text)]
        trials.append(trial(each, rows[number], number, seed))
    return questions, trials


def _judge_group(
    questions: Sequence[Question], trials: Sequence[Trial], settings: Settings
) -> Iterator[Judgement]:
    needs = [
        Need(each.number, settings.chosen(each), [each.case, *shuffled(each, settings.shuffles)])
        for each in trials
    ]
    removals = [remove(questions, how, needs) for how in settings.removal]
    for each, need in zip(trials, needs, strict=True):
        measured = [
            row
            for measure in need.measures
            for row in find(measure, each, need.cases[1:], removals)
        ]
        told = settings.told(each)
        yield Judgement(each.explanation, tuple(measured), told, each.explanation.notes)
