"""Plan: what a verb would take, estimated before it runs."""

from collections.abc import Callable, Mapping
from dataclasses import asdict, dataclass, field
from textwrap import wrap
from typing import Any

from attlas.progress import duration

WIDTH = 78  # columns of a line
MOST_LINES = 12
DOUBT = 2.0  # the time may be so many times longer or shorter than the estimate


@dataclass(frozen=True)
class Plan:
    """What a verb would take on these texts: time, memory, and how often the model would run.

    `peak` is the memory beside the weights of the model, in bytes, and `free` what its device can
    still give. `seconds` is the middle of a range: see `between`.
    """

    verb: str
    model: str
    device: str
    texts: int
    tokens: int  # of all texts
    longest: int  # tokens of the longest text
    passes: float | int | None  # of the model over one text, on average; a pass back counts two
    seconds: float | int
    seconds_by_work: Mapping[str, float | int]
    peak: int
    weights: int
    free: int | None = None
    at_once: int = 1  # texts that share a batch, at most
    measured: str = ""  # what the estimate was measured on
    derived: str = ""  # what was computed from the shape of the model
    notes: tuple[str, ...] = field(default=())
    most_seconds: float | int | None = None  # if every text is as hard as can be
    most_passes: float | int | None = None

    @property
    def between(self) -> tuple[float, float]:
        """The least and the most seconds to expect."""
        return self.seconds / DOUBT, self.seconds * DOUBT

    def to_dict(self) -> dict[str, Any]:
        """Everything, as JSON."""
        return {**asdict(self), "notes": list(self.notes), "between": list(self.between)}

    def lines(self) -> list[str]:
        """The plan as a few lines of text; of long notes the first lines are shown."""
        low, high = self.between
        longest = f", the longest {self.longest:,}" if self.texts > 1 else ""
        free = "" if self.free is None else f"; {size(self.free)} are free"
        often = None if self.passes is None else count(round(max(self.passes, 1)), "pass")
        runs = "" if often is None else f"; about {often} of the model on each"
        runs += self._up_to(self.passes, self.most_passes, lambda most: f"{round(most):,}")
        lines = [f"{self.verb} with {self.model} on {self.device}"[:WIDTH]]
        time = f"time    {short(low)} to {short(high)}"
        time += self._up_to(self.seconds, self.most_seconds, lambda most: short(DOUBT * most))
        if self.texts:
            lines += [
                f"{count(self.texts, 'text')}, {count(self.tokens, 'token')}{longest}{runs}",
                time,
                f"memory  about {size(self.peak)} beside the weights ({size(self.weights)}){free}",
                f"at once {count(self.at_once, 'text')}",
            ]
        else:  # the work was timed as a whole, not text by text
            lines.append(time)
        if len(self.seconds_by_work) > 1:
            lines += [f"  {name:<24} {short(each)}" for name, each in self.seconds_by_work.items()]
        told = [self.measured and f"measured: {self.measured}"]
        told += [self.derived and f"derived: {self.derived}", *self.notes]
        more = [line for each in told if each for line in wrap(each, WIDTH, subsequent_indent="  ")]
        broken = [line for each in lines for line in wrap_kept(each)]
        return [*broken, *more][:MOST_LINES]

    @staticmethod
    def _up_to(
        usual: float | int | None, most: float | int | None, told: Callable[[float | int], str]
    ) -> str:
        """What is said where hard texts take more than twice as much."""
        is_more = usual is not None and most is not None and most > DOUBT * usual
        return f", up to {told(most)} for hard texts" if is_more and most else ""

    def __str__(self) -> str:
        return "\n".join(self.lines())


def wrap_kept(line: str) -> list[str]:
    """A line broken at the width of a terminal; its leading spaces stay."""
    return [line] if len(line) <= WIDTH else wrap(line, WIDTH, subsequent_indent="  ")


def count(number: int, what: str) -> str:
    """A number of things in words."""
    ending = "" if number == 1 else "es" if what.endswith("s") else "s"
    return f"{number:,} {what}{ending}"


def short(seconds: float | int) -> str:
    """A number of seconds in words, also if it is small."""
    return duration(seconds) if seconds >= 10 else f"{seconds:.2g} s"


def size(bytes_taken: float | int) -> str:
    """A number of bytes in words."""
    if bytes_taken < 2**30:
        return f"{max(bytes_taken / 2**20, 1):.0f} MB"
    shown = bytes_taken / 2**30
    return f"{shown:.1f} GB" if shown < 100 else f"{shown:,.0f} GB"
