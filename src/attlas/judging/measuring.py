"""What each measure says of a trial, beside shuffles of its scores and the best order there is."""

from collections.abc import Iterator, Sequence
from dataclasses import replace

import numpy as np

from attlas.errors import UnsupportedModelError
from attlas.judging.removals import Removal
from attlas.judging.trials import Trial
from attlas.mathematics.significance import per_text_p
from attlas.measures import NOTHING, Case, Measure, is_circular
from attlas.measures.randomisation import cannot_react
from attlas.methods import METHODS
from attlas.removing.removal import usual_removal
from attlas.results.judgement import MeasuredScore


def why_not(measure: Measure, trial: Trial) -> str:
    """Why a measure cannot be applied; nothing if it can."""
    if "method" in measure.needs and not trial.can_compute_again:
        return "not applicable: the explanation would have to be computed again"
    if "edits" in measure.needs and not (
        trial.example and trial.example.fields.get("revised_text")
    ):
        return "not applicable: the text as editors changed it is not given"
    if "marks" in measure.needs and trial.case.marks is None:
        return "not applicable: no tokens are marked"
    return ""


def shuffled(trial: Trial, count: int) -> list[Case]:
    """The case with its scores at other tokens; all explanations of a text are shuffled alike."""
    # From the lowest up, so that the same tokens come out on top whatever the scores are.
    scores = np.sort(trial.case.scores)
    random = trial.random("shuffles")
    return [replace(trial.case, scores=random.permutation(scores)) for _ in range(count)]


def find(
    measure: Measure, trial: Trial, controls: Sequence[Case], removals: Sequence[Removal]
) -> Iterator[MeasuredScore]:
    """What a measure says: a row for each removal, or one where it removes nothing."""
    blank = MeasuredScore(
        measure.name, "", None, measure.better, measure.kind, reading=measure.reading
    )
    reason = why_not(measure, trial)
    if reason:
        yield replace(blank, note=reason)
    elif measure.value is None:
        yield _ask(measure, trial, blank)
    elif measure.ways is None:
        yield _compare(measure, trial, controls, None, blank)
    else:
        for removal in removals:
            named = replace(blank, removal=removal.name)
            if removal.erasures is None:
                yield replace(named, note=f"not applicable: {removal.refused}")
            else:
                yield _compare(measure, trial, controls, removal, named)


def _ask(measure: Measure, trial: Trial, blank: MeasuredScore) -> MeasuredScore:
    """The figure of a measure that asks the model in its own way: nothing to compare it with."""
    assert measure.ask is not None
    try:
        value = measure.ask(trial.occasion)
    except UnsupportedModelError as problem:
        return replace(blank, note=f"not applicable: {problem}")
    deaf = None
    if measure.name == "randomisation":
        deaf = cannot_react(METHODS[trial.explanation.method])
    return replace(blank, value=value, note=deaf or _note(value))


def _compare(
    measure: Measure,
    trial: Trial,
    controls: Sequence[Case],
    removal: Removal | None,
    blank: MeasuredScore,
) -> MeasuredScore:
    value = _figure(measure, trial.number, trial.case, removal)
    chance = np.array([_figure(measure, trial.number, each, removal) for each in controls])
    known = chance[~np.isnan(chance)]
    mean = float(known.mean()) if len(known) else np.nan
    best = np.nan if removal is None else removal.ceiling(measure.name, trial.number)
    return replace(
        blank,
        value=value,
        shuffled=mean,
        ceiling=best,
        share=(value - mean) / (best - mean) if best != mean else np.nan,
        p=per_text_p(
            value, chance, measure.better, trial.random(f"{measure.name} {blank.removal}")
        ),
        circular=_is_circular(measure, trial, blank.removal),
        note=_note(value),
    )


def _figure(measure: Measure, text: int, case: Case, removal: Removal | None) -> float:
    assert measure.value is not None
    if removal is None or removal.erasures is None or measure.ways is None:
        return measure.value(case, NOTHING, NOTHING)
    outcomes = removal.erasures.of(text, measure.ways(case))
    return measure.value(case, removal.erasures.whole(text), outcomes)


def _is_circular(measure: Measure, trial: Trial, removal: str) -> bool:
    if not trial.can_compute_again:
        return False
    origin = trial.explanation.origin
    used = None
    if origin.method == "leave_one_out":
        used = origin.options.get("removal") or usual_removal(trial.question)
    return is_circular(measure.name, origin.method, removal, computed_with=used)


def _note(value: float) -> str:
    return "nothing can be said of this text" if np.isnan(value) else ""
