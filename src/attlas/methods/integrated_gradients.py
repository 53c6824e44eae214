"""Integrated gradients: gradients along the straight line from an empty input to this one.

What the target gains between two points of the line is known from its values. So every stretch of
it shows by itself how far the integral of the slopes is from the truth, and the worst are halved.
"""

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, field

import numpy as np
import torch

from attlas.errors import UsageError
from attlas.methods.support.method import Scored, method
from attlas.methods.support.vectors import inner_products, wide
from attlas.models.asking.memory import in_fitting_batches, rows_of
from attlas.models.asking.question import Question
from attlas.models.states.embeddings import (
    embedding_gradients,
    entered_vectors,
    over_tokens,
    score_entering,
)
from attlas.removing.removal import BASELINES, baseline_vectors
from attlas.shapes import StreamVectors, TokenVector

FIRST = 4  # stretches at first, each with its two ends and its middle
Stretch = tuple[float, float, float]  # its start, middle and end
USUAL_STEPS = 8  # points, that the default tolerance takes


@method(
    family="reference",
    signed=True,
    of="logit",
    paper="Sundararajan et al. 2017, arXiv:1703.01365",
    reading="How far the token moves the target, up or down, on the way from an empty input.",
    needs=("embeddings",),
    cost="expensive",
    fills=True,
    weighs=lambda question, options: 3 * (options["steps"] or USUAL_STEPS),
    hardest=lambda options: {"steps": options["steps"] or options["most"]},
)
def integrated_gradients(
    question: Question,
    *,
    tolerance: float = 0.05,
    most: int = 600,
    steps: int | None = None,
    baseline: str = "mask",
) -> Scored:
    """Score each token by its change from a baseline times the mean gradient on the way.

    The scores add up to the target's logit minus the baseline's, up to the error of the integral.
    Stretches of the straight line get more points until this error is at most the `tolerance`, as a
    share of that gain or of the largest score; there are `most` points. `steps` instead takes so
    many midpoints of equal steps. Scores that are not within the tolerance come with a warning. The
    `baseline` has every content token replaced by the `mask` token (or the nearest thing the
    tokenizer has; a patch is blanked), the `pad` token or a `zero` vector. Other tokens keep their
    vectors and score zero. Another baseline gives other scores.
    """
    if steps is not None and steps < 1:
        raise UsageError(f"steps of integrated_gradients must be at least 1, not {steps}")
    if not tolerance > 0:
        raise UsageError(f"tolerance of integrated_gradients is above 0, not {tolerance}")
    own = entered_vectors(question)
    start = baseline_vectors(question, own, baseline)
    if steps is None:
        found = integrate(question, start, own, tolerance, most)
    else:
        found = integrate_evenly(question, start, own, steps)
    scores = torch.tensor(np.stack([each.scores for each in found]), dtype=torch.float64)
    bases = [{"base": each.before, "base_of": BASELINES[baseline]} for each in found]
    return Scored(
        scores.to(wide(own[0])),
        row_notes=[(_completeness(each, baseline),) for each in found],
        row_details=bases,
        row_warnings=[_warning(each, tolerance) for each in found],
    )


@dataclass(frozen=True, eq=False)
class Integrated:
    """The scores of one text, the target's logit at both ends, and how far they may be off."""

    scores: TokenVector
    before: float
    after: float
    error: float
    how: str  # with how many points

    @property
    def gain(self) -> float:
        """What the target gains on the baseline."""
        return self.after - self.before

    @property
    def missed(self) -> float:
        """By how much the sum of the scores misses the gain."""
        return abs(float(self.scores.sum()) - self.gain)


def integrate(
    question: Question,
    start: Sequence[StreamVectors],
    end: Sequence[StreamVectors],
    tolerance: float,
    most: int,
) -> list[Integrated]:
    """Each token's share of what the target gains from `start` to `end`, within the tolerance."""
    paths = [PathIntegral() for _ in range(len(question))]
    points = [(row, place) for row, path in enumerate(paths) for place in path.start()]
    while points:
        for (row, place), value, slopes in _slopes(question, start, end, points):
            paths[row].add(place, value, slopes)
        points = [
            (row, place)
            for row in sorted({row for row, _ in points})
            for place in paths[row].refine(tolerance, most)
        ]
    return [
        Integrated(
            each.integral(),
            each.values[0.0],
            each.values[1.0],
            each.error,
            f"{len(each.values)} points",
        )
        for each in paths
    ]


def integrate_evenly(
    question: Question, start: Sequence[StreamVectors], end: Sequence[StreamVectors], steps: int
) -> list[Integrated]:
    """Each token's share of what the target gains from `start` to `end`, at midpoints of steps."""
    rows = range(len(question))
    points = [(row, (step + 0.5) / steps) for row in rows for step in range(steps)]
    sums: list[TokenVector | float] = [0.0] * len(question)
    for (row, _), _, slopes in _slopes(question, start, end, points):
        sums[row] = sums[row] + slopes / steps
    ends = [score_entering(question, "logit", each).tolist() for each in (start, end)]
    return [
        Integrated(
            np.asarray(own),
            before,
            after,
            abs(float(np.sum(own)) - (after - before)),
            f"{steps} midpoints",
        )
        for own, before, after in zip(sums, *ends, strict=True)
    ]


def _slopes(
    question: Question,
    start: Sequence[StreamVectors],
    end: Sequence[StreamVectors],
    points: Sequence[tuple[int, float]],
) -> Iterator[tuple[tuple[int, float], float, TokenVector]]:
    """The target, and each token's share of its slope, at points: a row and a place on its way."""
    ways = [wide(last) - wide(first) for first, last in zip(start, end, strict=True)]
    device = ways[0].device

    def ask(numbers: Sequence[int]) -> list[tuple[tuple[int, float], float, TokenVector]]:
        rows = [points[number][0] for number in numbers]
        how_far = torch.tensor([points[number][1] for number in numbers], device=device)
        along = [way[rows] for way in ways]
        values = [
            torch.addcmul(wide(first)[rows], each, how_far.to(each)[:, None, None])
            for first, each in zip(start, along, strict=True)
        ]
        streams, scores = embedding_gradients(question.rows(rows), "logit", values)
        shares = over_tokens(
            question.inputs,
            [
                (entered.start, inner_products(each, entered.gradient))
                for entered, each in zip(streams, along, strict=True)
            ],
        )
        found = zip(numbers, scores.tolist(), shares.double().cpu().numpy(), strict=True)
        return [(points[number], value, slopes) for number, value, slopes in found]

    at_once = rows_of(device, len(question.inputs.tokens[0]))
    for first in range(0, len(points), at_once):
        numbers = range(first, min(first + at_once, len(points)))
        too_large = "one text at one point does not fit"
        for found in in_fitting_batches(numbers, ask, too_large, "points"):
            yield from found


def _completeness(found: Integrated, baseline: str) -> str:
    """How far the scores are from adding up to the gain."""
    return (
        f"{found.how}, {baseline} baseline: the target gains {found.gain:.4g} on the baseline's "
        f"{found.before:.4g}, and the sum of the scores misses that by {found.missed:.2g}"
    )


def _warning(found: Integrated, tolerance: float) -> str:
    """Why the scores must not be relied on; empty if they may be."""
    largest = float(np.abs(found.scores).max())
    if found.error <= tolerance * max(abs(found.gain), largest):
        return ""
    return (
        f"not converged: with {found.how} the integral may be off by {found.error:.2g}, and the "
        f"target gains {found.gain:.2g}, so do not read these scores"
    )


@dataclass(eq=False)
class PathIntegral:
    """Simpson's rule on stretches of a path from 0 to 1, for one function of several inputs.

    `slopes` at a place are the inputs' shares of the slope there; the integral has one share for
    each input too.
    """

    values: dict[float, float] = field(default_factory=dict)
    slopes: dict[float, TokenVector] = field(default_factory=dict)
    _errors: dict[Stretch, float] = field(default_factory=dict)
    _asked: list[Stretch] = field(default_factory=list)  # stretches whose points are asked for

    def start(self) -> list[float]:
        """The places to begin with."""
        self._asked = [_stretch(step / FIRST, (step + 1) / FIRST) for step in range(FIRST)]
        return sorted({place for each in self._asked for place in each})

    def add(self, place: float, value: float, slopes: TokenVector) -> None:
        """Take the value and the slopes at a place.

        A slope that is not finite counts as zero: the stretches beside it then do not add up, and
        are halved until what they gain is too little to matter.
        """
        self.values[place] = value
        self.slopes[place] = np.where(np.isfinite(slopes), slopes, 0.0)

    def refine(self, tolerance: float, most: int) -> list[float]:
        """The places to ask next: none if it has converged, or if `most` would be passed."""
        self._errors |= {each: self._error_of(each) for each in self._asked}
        self._asked = []
        if self.is_within(tolerance) or not np.isfinite(self.error):
            return []
        worst = sorted(self._errors, key=self._errors.__getitem__, reverse=True)
        rest, allowed, places = self.error, tolerance * self.scale, list[float]()
        for each in worst[: max(0, most - len(self.values)) // 2]:
            if rest <= allowed / 2:
                break
            rest -= self._errors.pop(each)
            halves = [_stretch(each[0], each[1]), _stretch(each[1], each[2])]
            self._asked += halves
            places += [half[1] for half in halves]
        return places

    def is_within(self, tolerance: float) -> bool:
        """Whether the error is at most this share of the gain, or of the largest share of it."""
        return self.error <= tolerance * self.scale

    @property
    def gain(self) -> float:
        """What the function gains from one end to the other."""
        return self.values[1.0] - self.values[0.0]

    @property
    def scale(self) -> float:
        """What an error is compared with: the gain, or one input's share of it if that is more."""
        return max(abs(self.gain), float(np.abs(self.integral()).max()))

    @property
    def error(self) -> float:
        """By how much the stretches miss what they gain, added up; errors do not cancel."""
        return sum(self._errors.values())

    def integral(self) -> TokenVector:
        """Each input's share of the gain; not finite where the function is not."""
        known = np.isfinite(list(self.values.values())).all()
        found = np.zeros_like(self.slopes[0.0]) if known else self.slopes[0.0] * np.nan
        for start, end, weighted in self._simpson():
            found += (end - start) / 6 * weighted
        return found

    def _simpson(self) -> Iterator[tuple[float, float, TokenVector]]:
        for start, middle, end in self._errors:
            first, centre, last = (self.slopes[place] for place in (start, middle, end))
            yield start, end, first + 4 * centre + last

    def _error_of(self, stretch: Stretch) -> float:
        """How far the parabola through three slopes is from what the two halves gain."""
        first, centre, last = (float(self.slopes[place].sum()) for place in stretch)
        before, between, after = (self.values[place] for place in stretch)
        width = (stretch[2] - stretch[0]) / 24
        left = width * (5 * first + 8 * centre - last)
        right = width * (5 * last + 8 * centre - first)
        return abs(left - (between - before)) + abs(right - (after - between))


def _stretch(start: float, end: float) -> Stretch:
    return start, (start + end) / 2, end
