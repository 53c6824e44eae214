"""Judgement: what measures say about one explanation, compared with chance and the best order."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

import numpy as np

from attlas.results.explanation import Explanation
from attlas.results.support.files import plain
from attlas.results.support.frames import Frame, frame
from attlas.results.support.licence import Licence
from attlas.results.support.origin import subject_line
from attlas.results.support.result import Result


@dataclass(frozen=True)
class MeasuredScore:
    """The value of one measure, for one way to remove tokens if it removes any.

    `shuffled` is the mean value of shuffled scores and `ceiling` that of the best order found.
    `share` is where `value` lies from `shuffled` (0) to `ceiling` (1). `p` is how often shuffled
    scores do as well. Each may be None; if `value` is None, `note` says why.
    """

    measure: str
    removal: str
    value: float | None
    better: str
    kind: str
    shuffled: float | None = None
    ceiling: float | None = None
    share: float | None = None
    p: float | None = None
    circular: bool = False  # whether the method computes its scores by what the measure does
    note: str = ""
    reading: str = ""

    def __post_init__(self) -> None:
        for name in ("value", "shuffled", "ceiling", "share", "p"):
            given = getattr(self, name)
            known = None if given is None or not np.isfinite(given) else float(given)
            object.__setattr__(self, name, known)


COLUMNS = tuple(MeasuredScore.__dataclass_fields__)


@dataclass(frozen=True, eq=False)
class Judgement(Result):
    """An explanation and what each measure says about it."""

    view_kind: ClassVar[str] = "judgement"
    record_kind: ClassVar[str] = "judgement"

    explanation: Explanation
    measured: tuple[MeasuredScore, ...]
    settings: Mapping[str, Any]  # removal, shuffles, seed
    notes: tuple[str, ...] = ()
    licence: Licence | None = None  # whether the largest scores are where it matters

    def __len__(self) -> int:
        return len(self.measured)

    def __getitem__(self, index: int) -> MeasuredScore:
        return self.measured[index]

    def to_pandas(self) -> Frame:
        """One row for each measure and way to remove tokens."""
        return frame([asdict(each) for each in self.measured], columns=list(COLUMNS))

    def to_dict(self) -> dict[str, Any]:
        """Everything but maps and pictures, as JSON."""
        return {
            "explanation": self.explanation.to_dict(),
            "measured": [plain(asdict(each)) for each in self.measured],
            "settings": plain(self.settings),
            "notes": list(self.notes),
            **({"licence": self.licence.to_dict()} if self.licence else {}),
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> "Judgement":
        """Read what `to_dict` returned."""
        return cls(
            Explanation.from_dict(record["explanation"]),
            tuple(MeasuredScore(**each) for each in record["measured"]),
            dict(record["settings"]),
            tuple(record["notes"]),
            Licence.from_dict(known) if (known := record.get("licence")) else None,
        )

    def payload(self) -> dict[str, Any]:
        """What a page, a notebook or a terminal draws."""
        drawn = self.explanation.payload()
        return {
            **drawn,
            "kind": self.view_kind,
            "headline": f"Is this {drawn['headline'][0].lower()}{drawn['headline'][1:]}",
            "maps": None,
            "measured": [plain(asdict(each)) for each in self.measured],
            "settings": plain(self.settings),
            "notes": list(self.notes),
            "licence": self.licence.to_dict() if self.licence else drawn["licence"],
            "code": self.code(),
        }

    def code(self) -> str:
        """The Python lines that judge it again; you must fill in scores from elsewhere yourself."""
        names = list(dict.fromkeys(each.measure for each in self.measured))
        given = {"measures": names, **self.settings}
        options = "".join(f", {key}={value!r}" for key, value in given.items())
        origin = self.explanation.origin
        if origin.verb == "judge":
            text = "".join(f", {key}={value!r}" for key, value in origin.asked.items())
            lines = ["import attlas", subject_line(origin.model)]
            lines.append("given = ...  # the tokens and their scores")
            return "\n".join([*lines, f"attlas.judge(subject, given{options}{text})"])
        *lines, last = self.explanation.code().splitlines()
        return "\n".join([*lines, f"e = {last}", f"attlas.judge(subject, e{options})"])

    def _page_title(self) -> str:
        return f"{self.explanation.method} judged · {self.explanation.target.name}"

    def __repr__(self) -> str:
        told = ", ".join(
            f"{each.measure} {each.value:.3g}" for each in self.measured if each.value is not None
        )
        return f"Judgement({self.explanation.method}: {told})"
