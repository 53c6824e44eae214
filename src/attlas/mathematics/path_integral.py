"""The integral of a gradient along a path, with more points where it does not add up.

What a function gains between two points of the path is known from its values. So every stretch
shows by itself how far the integral of the slopes is from the truth, and the worst are halved.
"""

from collections.abc import Iterator
from dataclasses import dataclass, field

import numpy as np

from attlas.shapes import TokenVector

FIRST = 4  # stretches at first, each with its two ends and its middle
Stretch = tuple[float, float, float]  # its start, middle and end


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
