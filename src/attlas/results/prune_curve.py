"""PruneCurve: the accuracy of a model as its heads are switched off."""

from collections.abc import Mapping
from dataclasses import asdict, dataclass
from typing import Any, ClassVar

from attlas.errors import UnknownNameError
from attlas.results.head_importance import HeadImportance
from attlas.results.support.files import plain
from attlas.results.support.frames import Frame, frame
from attlas.results.support.origin import Origin, subject_line
from attlas.results.support.result import Result

SHARE_AXIS = "share of all heads switched off"
LAYER_AXIS = "heads of every layer switched off"


@dataclass(frozen=True)
class Mean:
    """A mean over texts with its 95 % interval."""

    mean: float
    low: float
    high: float


@dataclass(frozen=True)
class CurvePoint:
    """A point on the axis: how many heads are switched off there, and the accuracy."""

    place: float
    heads: int
    accuracy: Mean


@dataclass(frozen=True)
class Curve:
    """The curve of one ranking; `area` is the mean accuracy over all points.

    `ahead` is the area minus that of a random ranking, paired by text; None without a random one.
    """

    name: str
    points: tuple[CurvePoint, ...]
    area: Mean
    ahead: Mean | None = None

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> "Curve":
        """Read what `dataclasses.asdict` returned."""
        points = tuple(
            CurvePoint(each["place"], each["heads"], Mean(**each["accuracy"]))
            for each in record["points"]
        )
        ahead = None if record["ahead"] is None else Mean(**record["ahead"])
        return cls(record["name"], points, Mean(**record["area"]), ahead)


@dataclass(frozen=True, eq=False)
class PruneCurve(Result):
    """A curve for each ranking, and the importances behind those that all texts share."""

    view_kind: ClassVar[str] = "heads"
    record_kind: ClassVar[str] = "prune curve"

    axis: str
    curves: tuple[Curve, ...]
    importances: tuple[HeadImportance, ...]
    examples: int  # texts on which accuracy was measured
    origin: Origin
    notes: tuple[str, ...] = ()

    def __getitem__(self, name: str) -> Curve:
        """The curve of this name."""
        known = {curve.name: curve for curve in self.curves}
        if name not in known:
            raise UnknownNameError("curve", name, known)
        return known[name]

    def to_pandas(self) -> Frame:
        """One row for each curve and point."""
        rows = [
            (curve.name, point.place, point.heads, *asdict(point.accuracy).values())
            for curve in self.curves
            for point in curve.points
        ]
        return frame(rows, columns=["curve", "place", "heads", "accuracy", "low", "high"])

    def to_dict(self) -> dict[str, Any]:
        """Everything, as JSON."""
        return {
            "axis": self.axis,
            "curves": [plain(asdict(curve)) for curve in self.curves],
            "importances": [each.to_dict() for each in self.importances],
            "examples": self.examples,
            "origin": self.origin.to_dict(),
            "notes": list(self.notes),
        }

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> "PruneCurve":
        """Read what `to_dict` returned."""
        return cls(
            record["axis"],
            tuple(Curve.from_dict(each) for each in record["curves"]),
            tuple(HeadImportance.from_dict(each) for each in record["importances"]),
            record["examples"],
            Origin.from_dict(record["origin"]),
            tuple(record["notes"]),
        )

    def payload_section(self) -> dict[str, Any]:
        """What a view draws of the curves, alone or beside others."""
        places = [point.place for point in self.curves[0].points]
        shares = self.axis == SHARE_AXIS
        labels = [f"{100 * place:.0f} %" if shares else f"{place:.0f}" for place in places]
        curves = [plain(asdict(curve)) for curve in self.curves]
        return {"axis": self.axis, "labels": labels, "curves": curves}

    def payload(self) -> dict[str, Any]:
        """What a page, a notebook or a terminal draws."""
        return {
            "kind": self.view_kind,
            "version": 1,
            "headline": "How many heads can go?",
            **self.origin.view_facts(),
            "tokens": [],
            "importances": [each.payload_section() for each in self.importances],
            "charts": [self.payload_section()],
            "notes": [*self.notes, f"Accuracy on {self.examples} texts."],
            "code": self.code(),
        }

    def code(self) -> str:
        """The Python lines that compute this again; you must fill in the data yourself."""
        given = "rank_on, try_on" if self.origin.verb == "prune_curve" else "data"
        options = "".join(f", {key}={value!r}" for key, value in self.origin.options.items())
        load = subject_line(self.origin.model)
        data = "".join(f"{name} = ...  # texts with their labels\n" for name in given.split(", "))
        call = f"attlas.{self.origin.verb}(subject, {given}{options})"
        return f"import attlas\n{load}\n{data}{call}"

    def _page_title(self) -> str:
        return f"{self.origin.verb} · {self.origin.model}"

    def __repr__(self) -> str:
        areas = ", ".join(f"{each.name} {each.area.mean:.3f}" for each in self.curves)
        return f"PruneCurve({self.examples} texts, mean accuracy: {areas})"
