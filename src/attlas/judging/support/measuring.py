"""Measures applied to an explanation, to shuffles of its scores and to the best order."""

from collections.abc import Callable, Iterator, Sequence
from dataclasses import replace

import numpy as np

from attlas.errors import UnsupportedModelError
from attlas.judging.support.aligned import AlignedExplanation
from attlas.judging.support.removals import RemovalAnswers
from attlas.mathematics.significance import per_text_p
from attlas.measures import NOTHING, Case, Measure, is_circular
from attlas.measures.randomisation import cannot_react
from attlas.measures.support.measure import Value
from attlas.methods import METHODS
from attlas.removing.removal import usual_removal
from attlas.results.judgement import MeasuredScore


def why_not_applicable(measure: Measure, aligned: AlignedExplanation) -> str:
    """Why a measure cannot be applied; an empty string if it can."""
    if "method" in measure.needs and not aligned.can_compute_again:
        return "not applicable: Attlas cannot compute the explanation again"
    if "edits" in measure.needs and not (
        aligned.example and aligned.example.fields.get("revised_text")
    ):
        return "not applicable: there is no edited version of the text"
    if "marks" in measure.needs and aligned.case.marks is None:
        return "not applicable: no tokens are marked"
    return ""


def shuffled_cases(aligned: AlignedExplanation, count: int) -> list[Case]:
    """Shuffles of the scores over the tokens, by the same orders for all explanations of a text."""
    # Sorted first, so that the same tokens get the highest scores whatever the scores are.
    scores = np.sort(aligned.case.scores)
    random = aligned.random("shuffles")
    return [replace(aligned.case, scores=random.permutation(scores)) for _ in range(count)]


def measure_scores(
    measure: Measure,
    aligned: AlignedExplanation,
    controls: Sequence[Case],
    removals: Sequence[RemovalAnswers],
) -> Iterator[MeasuredScore]:
    """Apply a measure: a row for each removal, or one row if it removes nothing."""
    blank = MeasuredScore(
        measure.name, "", None, measure.better, measure.kind, reading=measure.reading
    )
    reason = why_not_applicable(measure, aligned)
    if reason:
        yield replace(blank, note=reason)
    elif measure.value is None:
        yield _ask(measure, aligned, blank)
    elif measure.ways is None:
        yield _compare(measure, aligned, controls, None, blank)
    else:
        for removal in removals:
            named = replace(blank, removal=removal.name)
            if removal.erasures is None:
                yield replace(named, note=f"not applicable: {removal.refused}")
            else:
                yield _compare(measure, aligned, controls, removal, named)


def _ask(measure: Measure, aligned: AlignedExplanation, blank: MeasuredScore) -> MeasuredScore:
    """The figure of a measure that runs the method again; it has no shuffles to compare with."""
    assert measure.ask is not None
    try:
        value = measure.ask(aligned.occasion)
    except UnsupportedModelError as problem:
        return replace(blank, note=f"not applicable: {problem}")
    note = None
    if measure.name == "randomisation":
        note = cannot_react(METHODS[aligned.explanation.method])
    return replace(blank, value=value, note=note or _note(value))


def _compare(
    measure: Measure,
    aligned: AlignedExplanation,
    controls: Sequence[Case],
    removal: RemovalAnswers | None,
    blank: MeasuredScore,
) -> MeasuredScore:
    figure = _figures(measure, aligned, removal)
    value = figure(aligned.case)
    shuffled = np.array([figure(each) for each in controls])
    known = shuffled[~np.isnan(shuffled)]
    mean = float(known.mean()) if len(known) else np.nan
    if measure.chance is not None and not np.isnan(value):
        mean = _figures(measure, aligned, removal, measure.chance)(aligned.case)
    best = _ceiling(measure, aligned, removal, [value, *known.tolist()])
    return replace(
        blank,
        value=value,
        shuffled=mean,
        ceiling=best,
        share=(value - mean) / (best - mean) if best != mean else np.nan,
        p=per_text_p(
            value, shuffled, measure.better, aligned.random(f"{measure.name} {blank.removal}")
        ),
        circular=_is_circular(measure, aligned, blank.removal),
        note=_note(value),
    )


def _figures(
    measure: Measure,
    aligned: AlignedExplanation,
    removal: RemovalAnswers | None,
    of: Value | None = None,
) -> Callable[[Case], float]:
    """The figure of any scores of the text, or what `of` makes of the same answers.

    Answers that all scores share are looked up once.
    """
    value, choose = of or measure.value, measure.ways
    assert value is not None
    if removal is None or removal.erasures is None or choose is None:
        return lambda case: value(case, NOTHING, NOTHING)
    erasures, text = removal.erasures, aligned.number
    whole = erasures.whole(text)
    if measure.shares_ways:
        shared = erasures.of(text, aligned.case.ways(choose))
        return lambda case: value(case, whole, shared)
    return lambda case: value(case, whole, erasures.of(text, case.ways(choose)))


def _ceiling(
    measure: Measure,
    aligned: AlignedExplanation,
    removal: RemovalAnswers | None,
    figures: Sequence[float],
) -> float:
    """The best figure there is, or else that of the best order of the search and of all asked."""
    if removal is None or removal.erasures is None or measure.ways is None:
        return np.nan
    erasures, text = removal.erasures, aligned.number
    if measure.ceiling is not None:
        outcomes = erasures.of(text, aligned.case.ways(measure.ways))
        return measure.ceiling(aligned.case, erasures.whole(text), outcomes)
    searched = removal.ceiling(measure.name, text)
    if np.isnan(searched):
        return searched
    return max(searched, *figures) if measure.better == "higher" else min(searched, *figures)


def _is_circular(measure: Measure, aligned: AlignedExplanation, removal: str) -> bool:
    if not aligned.can_compute_again:
        return False
    origin = aligned.explanation.origin
    used = None
    if origin.method == "leave_one_out":
        used = origin.options.get("removal") or usual_removal(aligned.question)
    return is_circular(measure.name, origin.method, removal, computed_with=used)


def _note(value: float) -> str:
    return "not defined for this text" if np.isnan(value) else ""
