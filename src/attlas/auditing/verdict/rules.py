"""The rules of the verdict: may the attention weights be read as an explanation here?

The rules, with δ = 0.1 in units of s (0 = shuffled scores, 1 = the best order there is):

1. The question is asked of the weights alone (family W). The best of them, and the best reference
   that is not circular, are chosen on one half of the texts and tested on the other.
2. A removal speaks **against** the weights if no token matters under it, or s is surely below δ, or
   surely more than δ below that of the reference. It speaks **for** them if s is surely above 0 and
   surely no more than δ below that of the reference. Otherwise it is **open**.
3. Tested on fewer texts than a minimum: *too few texts*. Attention that is surely not used: *not
   supported*. Every removal against: *not supported*. Every removal for, and the attention used as
   far as was tested: *supported*, unless another reading of the weights surely fails (s below δ
   under every removal): then *partly*, for which reading one takes decides.
4. Otherwise, unless removals contradict each other already, and if an interval that leaves the
   matter open is wider than 2 δ: *too few texts*. Otherwise: *partly*.

"Surely" is by 95 % bounds that hold for all removals at once. Methods that use more than the
weights (V, P) are listed beside; they never move the word.
"""

from collections.abc import Collection
from dataclasses import dataclass

from attlas.errors import UsageError
from attlas.mathematics.intervals import Estimate


@dataclass(frozen=True)
class Rules:
    """The thresholds of the verdict.

    Args:
        delta: A difference of s that does not matter.
        least_texts: With fewer texts to test on, the verdict is *too few texts*.
        least_room: If the ceiling is surely no further than this from shuffled scores (as a
            probability), no token matters.
    """

    delta: float = 0.1
    least_texts: int = 10
    least_room: float = 0.01

    def __post_init__(self) -> None:
        if self.delta <= 0 or self.least_texts < 2 or self.least_room < 0:
            raise UsageError(
                "delta is above 0, least_texts at least 2 and least_room not below 0; given: "
                f"{self.delta}, {self.least_texts}, {self.least_room}"
            )


@dataclass(frozen=True)
class RemovalTest:
    """The result under one removal: s, s minus that of the reference, and the room for s."""

    s: Estimate
    less_reference: Estimate | None
    room: Estimate

    def finding(self, rules: Rules) -> str:
        """Apply rule 2."""
        less = self.less_reference
        if (
            self.room.high < rules.least_room
            or self.s.high < rules.delta
            or (less is not None and less.high < -rules.delta)
        ):
            return "against"
        if self.s.low > 0 and less is not None and less.low > -rules.delta:
            return "for"
        return "open"

    def open_width(self, rules: Rules) -> float:
        """The width of the widest interval that leaves the removal open; zero if none does."""
        if self.finding(rules) != "open":
            return 0.0
        less = self.less_reference
        widths = [0.0 if self.s.low > 0 else self.s.high - self.s.low]
        if less is not None and not less.low > -rules.delta:
            widths.append(less.high - less.low)
        return max(widths)


def decide(
    tested: Collection[RemovalTest],
    used: Estimate | None,
    rules: Rules,
    failing: Collection[str] = (),
) -> str:
    """Apply rules 3 and 4; `failing` are other readings of the weights that surely fail."""
    findings = {each.finding(rules) for each in tested}
    surely_used = used is None or used.low > 0
    if min(each.s.inputs for each in tested) < rules.least_texts:
        return "too few texts"
    if findings == {"against"} or (used is not None and used.high < rules.delta):
        return "not supported"
    if findings == {"for"} and surely_used:
        return "partly" if failing else "supported"
    contradicted = {"for", "against"} <= findings
    widths = [each.open_width(rules) for each in tested]
    if used is not None and not surely_used:
        widths.append(used.high - used.low)
    if not contradicted and max(widths) > 2 * rules.delta:
        return "too few texts"
    return "partly"
