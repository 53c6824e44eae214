"""The rules of the verdict: may the attention weights be read as showing where a prediction rests?

s is how much of what matters a method comes upon early: 0 for a random order, 1 for the best one.

1. The question is asked of the weights alone: the best of `raw_attention`, `attention_rollout` and
   `effective_attention`. It is chosen on one half of the texts and tested on the other, both ways
   round; so are the best control and the best reference. This is done for five splits.
2. A removal speaks **against** the weights if there is nothing to point at under it: no token
   matters on 36 texts or more, or surely none matters more than another. So it does if s is surely
   below the floor, or surely not above that of a control.
   It speaks **for** them if s is surely above the floor, surely above the control, and surely no
   more than the margin below the reference. Weights within the margin of the best order need not
   be above the control, for nothing can be far above them: they must surely be no more than the
   margin below it.
   It speaks for them **in part** if s is surely above the floor and the control, but surely more
   than the margin below the reference, or not shown to be within it by an interval narrow enough
   to show it, or if there is no reference.
   Otherwise it is **open**; so it is if too few texts carry the sum.
3. Attention that is surely not used, or every removal against: *not supported*.
   Every removal for, at least two of them, and the attention surely used: *supported* if the
   weights as they are (`raw_attention`) are surely above the floor under one removal; *partly*,
   for it depends on how they are read, if surely below it under all; *too few texts* otherwise.
   A removal open that more texts would settle, or use that is not sure: *too few texts*.
   At least one removal for or in part: *partly*. Otherwise *too few texts*.
4. A word that fewer than four of the five splits give is *too few texts*.

"Surely" is by 95 % bounds that hold for all removals at once. Methods that use more than the
weights are listed beside; they never move the word.
"""

from collections.abc import Collection, Mapping
from dataclasses import InitVar, dataclass, field, replace
from math import inf

from attlas.errors import UsageError
from attlas.mathematics.intervals import Estimate

ENOUGH_SPLITS = 0.8
HOPELESS = 100  # times the texts given: so many more would not settle it
FLOORS = (0.2, 0.3, 0.4, 0.5)  # of the grid
MARGINS = (0.05, 0.1, 0.15, 0.2)


@dataclass(frozen=True)
class Rules:
    """The thresholds of the verdict.

    Args:
        floor: The weights must come at least this far, in units of s.
        margin: How far they may stay behind the best reference, in units of s.
        least_effective: If fewer texts than this carry the sum, nothing is concluded from it.
        least_room: If the best order surely finds less than this (as a probability), no token
            matters on these texts.
        least_texts: That no token matters at all is concluded from so many texts: if 36 are of one
            kind, surely fewer than one in ten others are of another.
        least_contrast: If the best order surely finds less than this share of all importance, no
            token matters more than another.
        least_use: The attention is used if shuffling it surely moves the answer by more than this.
    """

    floor: float = 0.3
    margin: float = 0.1
    least_effective: float = 10.0
    least_room: float = 0.02
    least_texts: int = 36
    least_contrast: float = 0.15
    least_use: float = 0.02
    delta: InitVar[float | None] = None  # the former name of both, refused

    def __post_init__(self, delta: float | None) -> None:
        if delta is not None:
            raise UsageError("Rules(delta=…) is now two thresholds: give floor= and margin=")
        shares = {name: getattr(self, name) for name in ("floor", "margin")}
        if not all(0 < value < 1 for value in shares.values()):
            given = ", ".join(f"{name}={value}" for name, value in shares.items())
            raise UsageError(f"floor and margin lie between 0 and 1; given: {given}")
        least = {name: value for name, value in vars(self).items() if name.startswith("least")}
        if min(least.values()) < 0:
            raise UsageError("the least_… of the rules are not below 0")

    def grid(self) -> list["Rules"]:
        """The same rules with each floor and each margin of the grid."""
        return [replace(self, floor=floor, margin=margin) for floor in FLOORS for margin in MARGINS]


@dataclass(frozen=True)
class RemovalTest:
    """The figures under one removal: s, s less that of the control and of the reference."""

    s: Estimate
    less_control: Estimate | None
    less_reference: Estimate | None
    room: Estimate  # how much there is to find on a text
    carrying: Estimate  # the share of texts with something to find
    contrast: Estimate
    typical: Estimate  # how much there is to find where there is something, on these texts alone
    effective: float  # texts that carry the sum
    plain: Estimate | None = None  # s of the weights as they are, not rolled out or made effective

    def is_flat(self, rules: Rules) -> bool:
        """Whether there is nothing to point at."""
        nothing = self.is_empty(rules) and self.carrying.inputs >= rules.least_texts
        return nothing or self.contrast.high < rules.least_contrast

    def is_empty(self, rules: Rules) -> bool:
        """Whether no token matters on these texts."""
        return self.typical.high < rules.least_room

    def is_carried(self, rules: Rules) -> bool:
        """Whether enough texts have something to find."""
        return self.effective >= rules.least_effective and not self.is_empty(rules)

    def finding(self, rules: Rules) -> str:
        """Apply rule 2."""
        if self.is_flat(rules):
            return "against"
        if not self.is_carried(rules):
            return "open"
        if self.s.high < rules.floor or self.beats_control(rules) is False:
            return "against"
        if not self._is_above(rules):
            return "open"
        reference = self.less_reference
        if reference is None:
            return "in part"
        if reference.low > -rules.margin:
            return "for"
        narrow = reference.high - reference.low <= 2 * rules.margin
        return "in part" if reference.high < -rules.margin or narrow else "open"

    def may_be_for(self, rules: Rules) -> bool:
        """Whether more texts may let it speak for the weights."""
        less = self.less_reference
        behind = less is None or less.high < -rules.margin
        return self.finding(rules) != "against" and not behind

    def beats_control(self, rules: Rules) -> bool | None:
        """Whether s is surely above that of the control; None if that is open."""
        less = self.less_control
        if less is None or less.low > 0 or self._is_near_best(less, rules):
            return True
        return False if less.high <= 0 else None

    def _is_near_best(self, less: Estimate, rules: Rules) -> bool:
        """Whether nothing can be far above the weights, and the control surely is not."""
        best = 1 - rules.margin
        return self.s.low > best or (self.s.mean > best and less.low > -rules.margin)

    def _is_above(self, rules: Rules) -> bool:
        """Whether s is surely above the floor and the control."""
        return self.s.low > rules.floor and self.beats_control(rules) is True

    def times_needed(self, rules: Rules) -> float:
        """How many times the texts would settle an open removal; infinite if none would."""
        if self.is_empty(rules):
            return rules.least_texts / self.carrying.inputs
        if self.effective < rules.least_effective:
            return rules.least_effective / self.effective if self.effective > 0 else inf
        times = [times_outside(self.s, rules.floor)]
        if self.less_control is not None and self.beats_control(rules) is None:
            times.append(times_outside(self.less_control, 0.0))
        if self.less_reference is not None and self._is_above(rules):
            half = (self.less_reference.high - self.less_reference.low) / 2
            times.append((half / rules.margin) ** 2)
        return max(times)


@dataclass(frozen=True)
class WeightsTest:
    """What was tested and what came out: everything that the verdict says."""

    word: str
    method: str
    tested: Mapping[str, RemovalTest]  # by removal
    used: Estimate | None
    controls: Mapping[str, str | None]  # the best, by removal
    references: Mapping[str, str | None]
    needed: int | None
    texts: int
    same_word: float
    rules: Rules
    model: str = ""
    gains: Mapping[str, float] = field(default_factory=dict)  # of readings that find surely more

    def removals(self, finding: str) -> list[str]:
        """The removals with this finding."""
        return [name for name, each in self.tested.items() if each.finding(self.rules) == finding]

    def depends_on_reading(self) -> bool | None:
        """Whether only the method does, not the weights as they are; None if that is open."""
        every = len(self.removals("for")) == len(self.tested) > 1
        return every and plain_weights_fail(self.tested.values(), self.rules)

    def waits_for_plain_weights(self) -> bool:
        """Whether all that is open is whether the weights as they are do too."""
        agreed = self.same_word >= ENOUGH_SPLITS
        return agreed and self.depends_on_reading() is None and is_used(self.used, self.rules)

    def is_ruled_out(self) -> bool:
        """Whether no number of texts would make the weights *supported*."""
        return not all(each.may_be_for(self.rules) for each in self.tested.values())


def times_outside(estimate: Estimate, threshold: float) -> float:
    """How many times the texts would put the threshold outside the interval."""
    if not estimate.low <= threshold <= estimate.high:
        return 1.0
    distance = abs(estimate.mean - threshold)
    is_below = estimate.mean < threshold
    half = estimate.high - estimate.mean if is_below else estimate.mean - estimate.low
    return (half / distance) ** 2 if distance > 0 else inf


def decide(tested: Collection[RemovalTest], used: Estimate | None, rules: Rules) -> str:
    """Apply rule 3."""
    findings = [each.finding(rules) for each in tested]
    if set(findings) == {"against"} or is_unused(used, rules):
        return "not supported"
    hopeful = [
        each
        for each, finding in zip(tested, findings, strict=True)
        if finding == "open" and each.times_needed(rules) <= HOPELESS
    ]
    if hopeful or not (used is None or is_used(used, rules)):
        return "too few texts"
    if set(findings) == {"for"} and len(findings) > 1 and is_used(used, rules):
        return _IF_PLAIN_WEIGHTS_FAIL[plain_weights_fail(tested, rules)]
    return "partly" if {"for", "in part"} & set(findings) else "too few texts"


_IF_PLAIN_WEIGHTS_FAIL = {True: "partly", False: "supported", None: "too few texts"}


def plain_weights_fail(tested: Collection[RemovalTest], rules: Rules) -> bool | None:
    """Whether the weights as they are, read by no method, are surely below the floor everywhere.

    False if they are surely above it under one removal, or cannot be read at all; None if neither
    is sure.
    """
    plain = [each.plain for each in tested]
    if any(each is None or each.low > rules.floor for each in plain):
        return False
    return all(each is not None and each.high < rules.floor for each in plain) or None


def times_for_plain_weights(tested: Collection[RemovalTest], rules: Rules) -> float:
    """How many times the texts would tell whether the weights as they are fail."""
    plain = [each.plain for each in tested if each.plain is not None]
    above = [times_outside(each, rules.floor) for each in plain if each.mean > rules.floor]
    return min(above) if above else max(times_outside(each, rules.floor) for each in plain)


def is_used(used: Estimate | None, rules: Rules) -> bool:
    """Whether the attention is surely used."""
    return used is not None and used.low > rules.least_use


def is_unused(used: Estimate | None, rules: Rules) -> bool:
    """Whether the attention is surely not used."""
    return used is not None and used.high < rules.least_use
