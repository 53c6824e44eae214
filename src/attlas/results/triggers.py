"""Triggers: words that a model trusts too much, and what they do to other texts."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from attlas.results.support.files import plain
from attlas.results.support.frames import Frame, frame
from attlas.results.support.origin import Origin, subject_line
from attlas.results.support.result import Result
from attlas.views.units import visible


@dataclass(frozen=True)
class TriggerWord:
    """A word, the segment it goes into, and where in that segment, from 0 to 1."""

    text: str
    segment: str
    place: float


@dataclass(frozen=True)
class Entry:
    """One entry of a map: `query` attends to `key`, which adds `attribution` to the prediction."""

    query: str
    key: str
    attribution: float


@dataclass(frozen=True)
class Effect:
    """What a trigger does to the accuracy on the texts of one gold class.

    `control` is the accuracy with random words of the same frequency at the same places. `drop` is
    `control` minus `after`, with its 95 % interval from `low` to `high`.
    """

    label: str
    texts: int
    before: float
    after: float
    control: float
    drop: float
    low: float
    high: float


@dataclass(frozen=True)
class Trigger:
    """Words that a prediction relied on, where they were found, and what they do to other texts."""

    words: tuple[TriggerWord, ...]
    attribution: float  # the sum of the two largest entries
    entries: tuple[Entry, ...]
    site: str
    head: int
    found_in: str
    predicted: str
    effects: tuple[Effect, ...] = ()

    @property
    def text(self) -> str:
        """The words, in the order of the text they come from."""
        return " ".join(word.text for word in self.words)

    @property
    def strongest(self) -> Effect:
        """The effect on the class that it harms most, beyond what random words do."""
        return max(self.effects, key=lambda effect: effect.drop)

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> "Trigger":
        """Read what `dataclasses.asdict` returned."""
        given = {
            **record,
            "words": tuple(TriggerWord(**word) for word in record["words"]),
            "entries": tuple(Entry(**entry) for entry in record["entries"]),
            "effects": tuple(Effect(**effect) for effect in record["effects"]),
        }
        return cls(**given)


@dataclass(frozen=True, eq=False)
class Triggers(Result):
    """The triggers that were tried, from the most to the least harmful beyond random words."""

    view_kind: ClassVar[str] = "triggers"
    record_kind: ClassVar[str] = "triggers"

    triggers: tuple[Trigger, ...]
    origin: Origin
    notes: tuple[str, ...] = ()

    def __len__(self) -> int:
        return len(self.triggers)

    def __getitem__(self, index: int) -> Trigger:
        return self.triggers[index]

    def to_pandas(self) -> Frame:
        """One row for each trigger and gold class."""
        rows = [
            {"trigger": trigger.text, "attribution": trigger.attribution, **asdict(effect)}
            for trigger in self.triggers
            for effect in trigger.effects
        ]
        names = ["trigger", "attribution", *Effect.__dataclass_fields__]
        return frame(rows, columns=names)

    def to_dict(self) -> dict[str, Any]:
        """Everything, as JSON."""
        return {
            "triggers": [plain(asdict(trigger)) for trigger in self.triggers],
            "origin": self.origin.to_dict(),
            "notes": list(self.notes),
        }

    def payload(self) -> dict[str, Any]:
        """What a page, a notebook or a terminal draws."""
        rows = [
            {**plain(asdict(each)), "text": each.text, "strongest": asdict(each.strongest)}
            for each in self.triggers
        ]
        return {
            "kind": self.view_kind,
            "version": 1,
            "headline": "Which words does the model trust too much?",
            **self.origin.view_facts(),
            "tokens": [],
            "triggers": rows,
            "notes": list(self.notes),
            "code": self.code(),
        }

    def code(self) -> str:
        """The Python lines that compute this again; you must fill in the data yourself."""
        given = {key: value for key, value in self.origin.options.items() if value is not None}
        options = "".join(f", {key}={value!r}" for key, value in given.items())
        load = subject_line(self.origin.model)
        data = "data = ...  # the texts with their labels"
        return f"import attlas\n{load}\n{data}\nattlas.triggers(subject, data{options})"

    def _page_title(self) -> str:
        return f"triggers · {self.origin.model}"

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> "Triggers":
        """Read what `to_dict` returned."""
        return cls(
            tuple(Trigger.from_dict(each) for each in record["triggers"]),
            Origin.from_dict(record["origin"]),
            tuple(record["notes"]),
        )

    def __repr__(self) -> str:
        if not self.triggers:
            return "Triggers(none)"
        first = self.triggers[0]
        told = f"{visible(first.text)} −{100 * first.strongest.drop:.0f} points"
        return f"Triggers({len(self)} tried, strongest: {told} on {first.strongest.label})"
