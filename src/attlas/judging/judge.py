"""The verb `judge`: measures applied to one explanation, or to several in the caller's order."""

from collections.abc import Iterable, Iterator, Sequence
from dataclasses import dataclass
from typing import Any, TypedDict, Unpack, overload

import torch

from attlas.catalogue import REMOVALS
from attlas.errors import UnknownNameError, UsageError
from attlas.explaining.licensing import HeatMap, licences
from attlas.judging.support.aligned import AlignedExplanation, JudgeRequest, align, judge_request
from attlas.judging.support.measuring import measure_scores, shuffled_cases, why_not_applicable
from attlas.judging.support.removals import RemovalAnswers, TextMeasures, ask_without_tokens
from attlas.measures import MEASURES, Measure
from attlas.models.asking.memory import telling_shortages
from attlas.models.asking.question import Question
from attlas.models.subject import Subject, check_subject
from attlas.results import Explanation
from attlas.results.judgement import Judgement
from attlas.results.support.licence import Licence
from attlas.verbs import verb
from attlas.views.elsewhere import is_one

DEFAULT_REMOVALS = ("delete", "mask")
SHUFFLES = 99


class JudgeOptions(TypedDict, total=False):
    """The keyword arguments of `judge`."""

    text: Any
    target: Any
    marks: Any
    removal: Sequence[str] | str
    shuffles: int
    seed: int


@overload
def judge(
    subject: Subject,
    explanations: Explanation | list[float] | list[tuple[str, float]],
    measures: Sequence[str] | str | None = None,
    **options: Unpack[JudgeOptions],
) -> Judgement: ...
@overload
def judge(
    subject: Subject,
    explanations: list[Explanation],
    measures: Sequence[str] | str | None = None,
    **options: Unpack[JudgeOptions],
) -> list[Judgement]: ...
@overload
def judge(
    subject: Subject,
    explanations: Any,
    measures: Sequence[str] | str | None = None,
    **options: Unpack[JudgeOptions],
) -> Any: ...
@verb("judging")
@telling_shortages
def judge(
    subject: Subject,
    explanations: Any,
    measures: Sequence[str] | str | None = None,
    *,
    text: Any = None,
    target: Any = None,
    marks: Any = None,
    removal: Sequence[str] | str = DEFAULT_REMOVALS,
    shuffles: int = SHUFFLES,
    seed: int = 0,
) -> Judgement | list[Judgement]:
    """Judge an explanation by measures: a row for each measure and each way to remove tokens.

    Each figure stands beside its mean over shuffles of the same scores, with the share of shuffles
    that do as well. If `location` is among the measures and tokens can be removed in two ways, the
    judgement says whether the largest scores may be read as the tokens that matter (`licence`).

    Args:
        subject: The model that was explained.
        explanations: What `explain` returned, or scores from elsewhere: a list of numbers, one for
            each content token (or for each token, with special ones), a list of (word, score), a
            pair (tokens, scores), or an explanation of SHAP, inseq, captum or ferret. A list of
            explanations gives a list of judgements in the same order.
        measures: Names of measures; by default all that are cheap and applicable.
        text: The text of scores from elsewhere; those of SHAP and inseq hold it. For several
            explanations, one text for all or a list.
        target: What scores from elsewhere explain; the model's prediction by default.
        marks: The tokens that people marked: spans of characters, one mark for each token, or an
            `Example`. For several explanations, a list.
        removal: How tokens are removed.
        shuffles: How often the scores are shuffled.
        seed: Decides everything that is drawn at random.

    Example:
        >>> explanation = attlas.explain(subject, "a great film", "gradient_attention")
        >>> attlas.judge(subject, explanation, ["comprehensiveness", "sufficiency"])
    """
    check_subject(subject, "judge")
    settings = judge_settings(measures, removal, shuffles, seed)
    requests = judge_requests(subject, explanations, text, target, marks)
    with torch.inference_mode(False):  # gradients may be needed, whatever the caller switched off
        judgements = _judge_all(subject, requests, settings)
    return judgements[0] if is_one(explanations) else judgements


def judge_requests(
    subject: Subject, explanations: Any, text: Any, target: Any, marks: Any
) -> list[JudgeRequest]:
    """What the model is asked for each explanation."""
    alone = is_one(explanations)
    listed = [explanations] if alone else list(explanations)
    texts, all_marks = (
        _for_each(value, listed, alone, name) for value, name in ((text, "text"), (marks, "marks"))
    )
    return [
        judge_request(subject, each, own_text, target, own_marks)
        for each, own_text, own_marks in zip(listed, texts, all_marks, strict=True)
    ]


@dataclass(frozen=True)
class JudgeSettings:
    """How explanations are judged."""

    measures: tuple[Measure, ...] | None  # None: all that are cheap and applicable
    removal: tuple[str, ...]
    shuffles: int
    seed: int

    def measures_for(self, aligned: AlignedExplanation) -> list[Measure]:
        """The measures that are applied to an explanation."""
        if self.measures is not None:
            return list(self.measures)
        cheap = [each for each in MEASURES if each.cost == "cheap"]
        return [each for each in cheap if not why_not_applicable(each, aligned)]

    def record(self, aligned: AlignedExplanation) -> dict[str, Any]:
        """The settings as the judgement of an explanation holds them."""
        known = {"removal": self.removal, "shuffles": self.shuffles, "seed": self.seed}
        marks = aligned.case.marks
        return known if marks is None else {**known, "marks": marks.tolist()}


def judge_settings(measures: Any, removal: Any, shuffles: int, seed: int) -> JudgeSettings:
    """How explanations are judged; a name that does not exist is an error."""
    names = None if measures is None else _names("measures", measures)
    removals = _names("removal", removal)
    for how in removals:
        if how not in REMOVALS:
            raise UnknownNameError("removal", how, REMOVALS)
    if not removals:
        raise UsageError(f"removal names at least one of {', '.join(REMOVALS)}")
    if shuffles < 0:
        raise UsageError(f"shuffles is 0 or more, not {shuffles}")
    chosen = None if names is None else tuple(MEASURES[name] for name in names)
    return JudgeSettings(chosen, removals, shuffles, seed)


def _names(argument: str, value: Any) -> tuple[str, ...]:
    names = [value] if isinstance(value, str) else value
    if not isinstance(names, Iterable) or not all(isinstance(each, str) for each in names):
        raise UsageError(f"{argument} takes a name or a list of names, not {value!r}")
    return tuple(names)


def _for_each(value: Any, listed: Sequence[Any], alone: bool, name: str) -> list[Any]:
    """The value for each explanation, from one value or from a list of them."""
    if alone:
        return [value]
    if not isinstance(value, list):
        return [value] * len(listed)
    if len(value) != len(listed):
        raise UsageError(
            f"{len(listed)} explanations but {len(value)} in {name}: give one for each"
        )
    return value


def _judge_all(
    subject: Subject, requests: Sequence[JudgeRequest], settings: JudgeSettings
) -> list[Judgement]:
    judgements: dict[int, Judgement] = {}
    alike: dict[str, list[int]] = {}
    for index, each in enumerate(requests):
        alike.setdefault(repr(each.request), []).append(index)
    for indices in alike.values():
        questions, aligned = _align_all(subject, [requests[i] for i in indices], settings.seed)
        judgements.update(zip(indices, _judge_together(questions, aligned, settings), strict=True))
    return [judgements[index] for index in range(len(requests))]


def _align_all(
    subject: Subject, requests: Sequence[JudgeRequest], seed: int
) -> tuple[list[Question], list[AlignedExplanation]]:
    """Questions about the texts, each text once, and each explanation aligned with its text."""
    texts = {repr(each.text): each.text for each in requests}
    numbers = {key: number for number, key in enumerate(texts)}
    questions = subject.ask(list(texts.values()), requests[0].request)
    rows = {
        number: question.rows([row])
        for question in questions
        for row, number in enumerate(question.order)
    }
    aligned = []
    for each in requests:
        number = numbers[repr(each.text)]
        aligned.append(align(each, rows[number], number, seed))
    return questions, aligned


def _judge_together(
    questions: Sequence[Question], aligned: Sequence[AlignedExplanation], settings: JudgeSettings
) -> Iterator[Judgement]:
    texts = [
        TextMeasures(
            each.number,
            settings.measures_for(each),
            [each.case, *shuffled_cases(each, settings.shuffles)],
        )
        for each in aligned
    ]
    removals = [ask_without_tokens(questions, how, texts) for how in settings.removal]
    licensed = _licensed(aligned, texts, removals)
    for number, (each, text) in enumerate(zip(aligned, texts, strict=True)):
        rows = [
            row
            for measure in text.measures
            for row in measure_scores(measure, each, text.cases[1:], removals)
        ]
        yield Judgement(
            each.explanation,
            tuple(rows),
            settings.record(each),
            each.explanation.notes,
            licensed.get(number),
        )


def _licensed(
    aligned: Sequence[AlignedExplanation],
    texts: Sequence[TextMeasures],
    removals: Sequence[RemovalAnswers],
) -> dict[int, Licence]:
    """The licences of those whose location is measured, if two removals are possible."""
    usable = [each.erasures for each in removals if each.erasures is not None][:2]
    numbers = [
        number
        for number, text in enumerate(texts)
        if any(each.name == "location" for each in text.measures)
    ]
    if len(usable) < 2 or not numbers:
        return {}
    chosen = [aligned[number] for number in numbers]
    heat_maps = [
        HeatMap(each.number, each.case.scores, each.case.signed, each.case.seed) for each in chosen
    ]
    return dict(zip(numbers, licences(usable, heat_maps), strict=True))
