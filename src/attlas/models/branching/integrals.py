"""Integrals from 0 to 1: the points to take a gradient at, and the share of each in the sum."""

from collections.abc import Mapping, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from attlas.errors import UnknownNameError, UsageError

RULES = ("midpoint", "right")
MIDPOINTS = 12  # of the coarser rule that 36 are compared with
MOST = 108  # three times as many
# Half of the points of each rule, the other half mirrors it; places and shares between -1 and 1.
GAUSS = {0.0: 8 / 9, 0.7745966692414834: 5 / 9}
KRONROD = {
    0.0: 0.4509165386584741,
    0.4342437493468026: 0.4013974147759622,
    0.7745966692414834: 0.26848808986833345,
    0.9604912687080203: 0.10465622602646726,
}
PATTERSON = {
    0.0: 0.22551049979820668,
    0.22338668642896688: 0.21915685840158749,
    0.4342437493468026: 0.20062852937698902,
    0.6211029467372264: 0.17151190913639139,
    0.7745966692414834: 0.13441525524378423,
    0.8884592328722570: 0.09292719531512454,
    0.9604912687080203: 0.05160328299707974,
    0.9938319632127550: 0.01700171962994026,
}


@dataclass(frozen=True)
class Points:
    """Points at which gradients are taken, and what becomes of those that are known.

    The integral is each new gradient times its share, plus `kept` times what was known, plus what
    the points before had `ahead`: their shares in the next rule. `coarser` are the shares in a
    coarser rule, from which the error is estimated; if empty, that is what was known before, if
    anything. `sums_up` tells whether a wrong sum counts as an error too.
    """

    places: tuple[float, ...]
    shares: tuple[float, ...]
    steps: int  # of the whole rule
    kept: float = 0.0
    coarser: tuple[float, ...] = ()
    ahead: tuple[float, ...] = ()
    sums_up: bool = False

    def errors(self, maps: Tensor, before: Tensor, worth: Tensor | None) -> Tensor:
        """The estimated errors of integrals, as shares of the maps, `[site, batch]`.

        `maps` and what they were by a coarser rule are `[site, batch, head, query, key]`. Three
        times as many midpoints have a ninth of the error. Each rule after Gauss's is right for
        polynomials of twice the degree of the one before: its error is about the square. A rule
        that misses where the target moves does not sum to what the attention is worth.
        """
        size = _size(maps).clamp_min(1e-30)
        apart = _size(maps - before) / size
        if not self.sums_up:
            return apart / 8
        if worth is None:
            return apart**2
        return torch.maximum(apart**2, (maps.sum(dim=(2, 3, 4)) - worth).abs() / size)


def _size(maps: Tensor) -> Tensor:
    return maps.abs().sum(dim=(2, 3, 4))


def alike(maps: Sequence[Tensor]) -> list[list[int]]:
    """The numbers of the maps of each shape: those of one shape can be reckoned together."""
    found: dict[torch.Size, list[int]] = {}
    for number, each in enumerate(maps):
        found.setdefault(each.shape, []).append(number)
    return list(found.values())


def totals(maps: Sequence[Tensor]) -> Tensor:
    """The sum of each map, `[map, batch]`."""
    found: dict[int, Tensor] = {}
    for places in alike(maps):
        sums = torch.stack([maps[place] for place in places]).sum(dim=(2, 3, 4))
        found.update(zip(places, sums, strict=True))
    return torch.stack([found[place] for place in range(len(maps))])


def fixed(steps: int, rule: str) -> Points:
    """So many midpoints of equal steps, or their right ends."""
    late = 0.5 if rule == "midpoint" else 1.0
    places = tuple((step + late) / steps for step in range(steps))
    return Points(places, (1 / steps,) * steps, steps)


def rounds() -> Sequence[Points]:
    """Seven points, then fifteen, enough for a smooth curve; then midpoints, up to `MOST`."""
    return [kronrod(), patterson(), thrice(MIDPOINTS), added(3 * MIDPOINTS)]


def kronrod() -> Points:
    """Kronrod's seven points, with Gauss's three among them."""
    whole = _mirrored(KRONROD)
    return Points(
        tuple((1 + place) / 2 for place in whole),
        tuple(share / 2 for share in whole.values()),
        len(whole),
        coarser=tuple(_mirrored(GAUSS).get(place, 0.0) / 2 for place in whole),
        ahead=tuple(_mirrored(PATTERSON)[place] / 2 for place in whole),
        sums_up=True,
    )


def patterson() -> Points:
    """The eight points that Patterson adds to Kronrod's seven."""
    whole, known = _mirrored(PATTERSON), _mirrored(KRONROD)
    more = {place: share for place, share in whole.items() if place not in known}
    places = tuple((1 + place) / 2 for place in more)
    return Points(places, tuple(share / 2 for share in more.values()), len(whole), sums_up=True)


def _mirrored(half: Mapping[float, float]) -> dict[float, float]:
    """The whole rule, its places in order."""
    return dict(sorted({**half, **{-place: share for place, share in half.items()}}.items()))


def thrice(steps: int) -> Points:
    """The midpoints of `3 * steps` steps, with those of `steps` steps among them."""
    whole = fixed(3 * steps, "midpoint")
    coarser = tuple(1 / steps if place % 3 == 1 else 0.0 for place in range(3 * steps))
    return Points(whole.places, whole.shares, whole.steps, coarser=coarser)


def added(steps: int) -> Points:
    """The midpoints of `3 * steps` steps that are not midpoints of `steps` steps."""
    places = tuple((step + 0.5) / (3 * steps) for step in range(3 * steps) if step % 3 != 1)
    return Points(places, (1 / (3 * steps),) * len(places), 3 * steps, kept=1 / 3)


@dataclass(frozen=True)
class Quadrature:
    """How the integral is computed: with `steps`, or with more points until the error is small.

    `tolerance` is the largest error allowed, as a share of the map.
    """

    rule: str = "midpoint"
    steps: int | None = None
    tolerance: float = 0.01
    memory: int | None = None  # bytes to use besides the model; None means what is free

    def __post_init__(self) -> None:
        if self.rule not in RULES:
            raise UnknownNameError("rule", self.rule, RULES)
        if self.steps is None and self.rule != "midpoint":
            raise UsageError(
                f"the {self.rule} rule needs a number of steps; midpoint finds its own"
            )
        if self.steps is not None and self.steps < 1:
            raise UsageError(f"steps are at least 1, not {self.steps}")
        if not self.tolerance > 0:
            raise UsageError(f"tolerance is above 0, not {self.tolerance}")
        if self.memory is not None and self.memory <= 0:
            raise UsageError(f"memory is above 0, not {self.memory}")

    @property
    def rounds(self) -> Sequence[Points]:
        """The points to take, round after round while the error is too large."""
        return rounds() if self.steps is None else [fixed(self.steps, self.rule)]
