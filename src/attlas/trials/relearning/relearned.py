"""What retraining found: accuracy by share, and the area between a method and random removal."""

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from attlas.mathematics.intervals import Estimate, bootstrap_means, simultaneous_bounds
from attlas.models.intervening.training import answers_right, labelled_batches
from attlas.results.support import plots
from attlas.shapes import ShareTexts, TextValues
from attlas.trials.relearning.curves import FORMS, RANDOM, Curves, Relearning
from attlas.trials.support.text_halves import text_numbers
from attlas.trials.support.trial import TrialOutcome

OWN, WHOLE = "right as it is", "right, trained on whole texts"
MASKED = "right, trained on masked texts"
Paths = Mapping[tuple[str, str], ShareTexts]  # by form and method, from no token masked to all


def outcome_of(
    relearning: Relearning, found: Sequence[Curves], notes: Sequence[str]
) -> TrialOutcome:
    """The outcome of a trial from the curves of all seeds; seeds are averaged first."""
    tested = relearning.tested
    own = answers_right(
        tested.questions[0].subject, labelled_batches(tested.questions, tested.labels)
    )
    x = [0.0, *relearning.shares, 1.0]
    random, paths = _averaged(found)
    areas = {key: area(x, random - path) for key, path in paths.items()}
    room = area(x, random - random[-1])
    relative = dict(zip(areas, relative_areas([*areas.values()], room), strict=True))
    figures = {OWN: own, WHOLE: random[0], MASKED: random[-1]}
    return TrialOutcome(
        figures={**figures, **{area_name(*key): each for key, each in areas.items()}},
        texts=text_numbers(tested.questions),
        sentence=_sentence(figures, relative, relearning),
        ceilings=dict.fromkeys(figures, 1.0),
        plots=(*_curves(x, random, paths), _bars(relative)),
        notes=(*_notes(relearning, found), *notes),
        details=_details(x, random, paths, relative, relearning, found),
    )


def area_name(form: str, method: str) -> str:
    """The name of the figure of a method: the area between its curve and that of random removal."""
    return f"area below random removal: {method}, {form}"


def _averaged(found: Sequence[Curves]) -> tuple[ShareTexts, Paths]:
    """The means over seeds of random removal and of each form and method."""

    def path(rows: Sequence[ShareTexts]) -> ShareTexts:
        each = [np.vstack([c.whole, r, c.masked]) for c, r in zip(found, rows, strict=True)]
        mean: ShareTexts = np.mean(each, axis=0)
        return mean

    paths = {key: path([each.methods[key] for each in found]) for key in found[0].methods}
    return path([each.random for each in found]), paths


def area(x: Sequence[float], heights: ShareTexts) -> TextValues:
    """The area below the lines through these points, for each text."""
    steps = np.diff(np.asarray(x))[:, None]
    total: TextValues = (steps * (heights[1:] + heights[:-1]) / 2).sum(axis=0)
    return total


def relative_areas(areas: Sequence[TextValues], room: TextValues) -> list[Estimate]:
    """Each area as a share of the room below random removal, with simultaneous intervals.

    This is the RACU of Madsen et al.: 1 if the first share already takes all that can be learned,
    0 for random removal. Texts are resampled, all methods together.
    """
    above = np.stack(areas, axis=1)[:, :, None]
    return simultaneous_bounds(above, np.broadcast_to(room[:, None, None], above.shape).copy())


def _sentence(
    figures: Mapping[str, TextValues],
    relative: Mapping[tuple[str, str], Estimate],
    relearning: Relearning,
) -> str:
    whole, masked = (float(figures[name].mean()) for name in (WHOLE, MASKED))
    said = (
        f"Trained again on {len(relearning.training)} whole texts, the model is right on "
        f"{whole:.0%} of {len(relearning.tested)} test texts; trained and tested on masks alone, "
        f"on {masked:.0%}."
    )
    if _learned(figures).low <= 0:
        return f"{said} So training taught it nothing that is surely more, and nothing can be said."
    told = "; ".join(
        ", ".join(
            f"{method} {_in_words(each)}"
            for (kind, method), each in relative.items()
            if kind == form
        )
        + f" ({form})"
        for form in relearning.forms
    )
    return (
        f"{said} Of what could be lost more than by random removal, removing the highest tokens "
        f"loses: {told}."
    )


def _learned(figures: Mapping[str, TextValues]) -> Estimate:
    """How much more is right after training on whole texts than on masks."""
    gain = figures[WHOLE] - figures[MASKED]
    return bootstrap_means(gain[:, None])[0]


def _in_words(each: Estimate) -> str:
    if not np.isfinite([each.mean, each.low, each.high]).all():
        return "unknown"
    return f"{each.mean:.0%} ({each.low:.0%} to {each.high:.0%})"


def _notes(relearning: Relearning, found: Sequence[Curves]) -> tuple[str, ...]:
    whole = [float(each.whole.mean()) for each in found]
    if len(found) > 1:
        seeds = (
            f"From {len(found)} seeds, the accuracy on whole texts is {min(whole):.1%} to "
            f"{max(whole):.1%}. Seeds are averaged first; intervals are over test texts alone."
        )
    else:
        seeds = (
            "Intervals are over test texts alone: trained from another seed, every accuracy "
            "would be somewhat different (seeds=3 and more averages them)."
        )
    plan = relearning.plan
    how = (
        f"{relearning.trainings} copies were trained from {plan.start}, {plan.epochs} epochs each, "
        f"at a rate of {plan.first_rate:g}; the model itself was not."
    )
    return (how, seeds, "Scope: none, the attention is not changed.")


def _curves(x: Sequence[float], random: ShareTexts, paths: Paths) -> list[plots.Plot]:
    made = []
    for form in dict.fromkeys(form for form, _ in paths):
        lines = {method: path for (kind, method), path in paths.items() if kind == form}
        lines[RANDOM] = random
        means = {name: bootstrap_means(path.T.copy()) for name, path in lines.items()}
        made.append(
            plots.curve(
                f"Accuracy after training without the highest tokens, {form}",
                x,
                {name: [each.mean for each in row] for name, row in means.items()},
                x_label="share of the tokens masked",
                y_label="accuracy on test texts",
                bands={
                    name: ([each.low for each in row], [each.high for each in row])
                    for name, row in means.items()
                },
                reading=f"{FORMS[form].capitalize()}. The further a line is below random_scores, "
                "the more of what the task needs the method finds.",
            )
        )
    return made


def _bars(relative: Mapping[tuple[str, str], Estimate]) -> plots.Plot:
    return plots.bars(
        "Area below random removal, as a share of the largest",
        {f"{method}, {form}": _finite(each.mean) for (form, method), each in relative.items()},
        x_label="relative area between the curves (RACU)",
        intervals={
            f"{method}, {form}": (_finite(each.low), _finite(each.high))
            for (form, method), each in relative.items()
        },
        reading="0: the method does no better than random removal. 1: its smallest share already "
        "takes all that can be learned. Intervals are simultaneous, over test texts.",
    )


def _details(
    x: Sequence[float],
    random: ShareTexts,
    paths: Paths,
    relative: Mapping[tuple[str, str], Estimate],
    relearning: Relearning,
    found: Sequence[Curves],
) -> dict[str, Any]:
    return {
        "shares": list(x),
        "accuracy": {
            f"{RANDOM}, plain": random.mean(axis=1).tolist(),
            **{f"{method}, {form}": p.mean(axis=1).tolist() for (form, method), p in paths.items()},
        },
        "relative area": {
            f"{method}, {form}": {
                "mean": _finite(each.mean),
                "low": _finite(each.low),
                "high": _finite(each.high),
            }
            for (form, method), each in relative.items()
        },
        "accuracy of each seed on whole texts": [float(each.whole.mean()) for each in found],
        "training texts": len(relearning.training),
        "trainings": relearning.trainings,
    }


def _finite(value: float) -> float | None:
    return float(value) if np.isfinite(value) else None
