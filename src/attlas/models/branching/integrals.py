"""Integrals from 0 to 1: the points to take a gradient at, and the share of each in the sum."""

from collections.abc import Sequence
from dataclasses import dataclass

from torch import Tensor

RULES = ("midpoint", "right")
FEWEST, MOST = 4, 108  # midpoints: of the coarsest rule, and at most; three times as many each time
# Three Gauss points, and the four that Kronrod adds to them; places and shares between -1 and 1.
GAUSS = {-0.7745966692414834: 5 / 9, 0.0: 8 / 9, 0.7745966692414834: 5 / 9}
KRONROD = {
    -0.9604912687080203: 0.10465622602646726,
    -0.7745966692414834: 0.26848808986833345,
    -0.4342437493468026: 0.4013974147759622,
    0.0: 0.4509165386584741,
    0.4342437493468026: 0.4013974147759622,
    0.7745966692414834: 0.26848808986833345,
    0.9604912687080203: 0.10465622602646726,
}


@dataclass(frozen=True)
class Points:
    """Points at which gradients are taken, and what becomes of those that are known.

    The integral is `kept` times what was known, plus each new gradient times its share. `coarser`
    are the shares in a coarser rule, from which the error is estimated; if empty, that is what was
    known before, if anything. `sums_up` tells whether a wrong sum counts as an error too.
    """

    places: tuple[float, ...]
    shares: tuple[float, ...]
    steps: int  # of the whole rule
    kept: float = 0.0
    coarser: tuple[float, ...] = ()
    sums_up: bool = False

    def error(self, apart: Tensor) -> Tensor:
        """The error of the rule, if it and the coarser one are so far apart.

        Three times as many midpoints have a ninth of the error. Kronrod's seven points are right
        for polynomials of twice the degree of Gauss's three: their error falls much faster.
        """
        return apart**1.5 if self.sums_up else apart / 8


def fixed(steps: int, rule: str) -> Points:
    """So many midpoints of equal steps, or their right ends."""
    late = 0.5 if rule == "midpoint" else 1.0
    places = tuple((step + late) / steps for step in range(steps))
    return Points(places, (1 / steps,) * steps, steps)


def rounds() -> Sequence[Points]:
    """Kronrod's seven points, which are enough for a smooth curve; then midpoints, up to `MOST`."""
    found = [kronrod(), thrice(FEWEST)]
    while found[-1].steps < MOST:
        found.append(added(found[-1].steps))
    return found


def kronrod() -> Points:
    """Kronrod's seven points, with Gauss's three among them."""
    return Points(
        tuple((1 + place) / 2 for place in KRONROD),
        tuple(share / 2 for share in KRONROD.values()),
        len(KRONROD),
        coarser=tuple(GAUSS.get(place, 0.0) / 2 for place in KRONROD),
        sums_up=True,
    )


def thrice(steps: int) -> Points:
    """The midpoints of `3 * steps` steps, with those of `steps` steps among them."""
    whole = fixed(3 * steps, "midpoint")
    coarser = tuple(1 / steps if place % 3 == 1 else 0.0 for place in range(3 * steps))
    return Points(whole.places, whole.shares, whole.steps, coarser=coarser)


def added(steps: int) -> Points:
    """The midpoints of `3 * steps` steps that are not midpoints of `steps` steps."""
    places = tuple((step + 0.5) / (3 * steps) for step in range(3 * steps) if step % 3 != 1)
    return Points(places, (1 / (3 * steps),) * len(places), 3 * steps, kept=1 / 3)
