"""HeadRedundancy: which heads attend to the same tokens."""

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from attlas.errors import UsageError
from attlas.results.head_importance import Head
from attlas.results.maps import Site
from attlas.results.support.frames import Frame, frame, labels
from attlas.results.support.origin import Origin, subject_line
from attlas.results.support.result import Result
from attlas.shapes import HeadPairs

MOST_SHOWN = 20


@dataclass(frozen=True, eq=False)
class HeadRedundancy(Result):
    """The distance in bits between the attention of every two heads; NaN if not comparable."""

    view_kind: ClassVar[str] = "redundancy"
    record_kind: ClassVar[str] = "head redundancy"

    sites: tuple[Site, ...]
    distances: HeadPairs
    examples: int
    origin: Origin
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        count = sum(site.heads for site in self.sites)
        if self.distances.shape != (count, count):
            raise UsageError(f"a table of shape {self.distances.shape}, but {count} heads")

    @property
    def heads(self) -> list[Head]:
        """Every head, in the order of the rows."""
        return [(site.name, head) for site in self.sites for head in range(site.heads)]

    def nearest(self, count: int = MOST_SHOWN) -> list[tuple[Head, Head, float]]:
        """The pairs of heads with the most similar attention, the nearest first."""
        one, other = np.triu_indices(len(self.distances), k=1)
        values = self.distances[one, other]
        there = np.flatnonzero(np.isfinite(values))
        order = there[np.argsort(values[there], kind="stable")][:count]
        heads = self.heads
        return [(heads[one[i]], heads[other[i]], float(values[i])) for i in order]

    def to_pandas(self) -> Frame:
        """The distances, head × head; a head is named by its site and its number."""
        index = labels(self.heads, ["site", "head"])
        return frame(self.distances, index=index, columns=index)

    def to_dict(self) -> dict[str, Any]:
        """Everything, as JSON; None for two heads that are not comparable."""
        table = [[None if np.isnan(v) else float(v) for v in row] for row in self.distances]
        return {**self._header(), "distances": table}

    def _header(self) -> dict[str, Any]:
        return {
            "sites": [[site.kind, site.layer, site.heads] for site in self.sites],
            "examples": self.examples,
            "origin": self.origin.to_dict(),
            "notes": list(self.notes),
        }

    def payload(self) -> dict[str, Any]:
        """What a page, a notebook or a terminal draws."""
        return {
            "kind": self.view_kind,
            "version": 1,
            "headline": "Which heads do the same?",
            **self.origin.view_facts(),
            "tokens": [],
            "heads": [f"{site} {head}" for site, head in self.heads],
            "distances": self.to_dict()["distances"],
            "nearest": [
                {"one": f"{a[0]} {a[1]}", "other": f"{b[0]} {b[1]}", "distance": distance}
                for a, b, distance in self.nearest()
            ],
            "notes": [f"Mean over {self.examples} texts.", *self.notes],
            "code": self.code(),
        }

    def code(self) -> str:
        """The Python lines that compute this again; you must fill in the texts yourself."""
        load = subject_line(self.origin.model)
        return f"import attlas\n{load}\ntexts = ...\nattlas.head_redundancy(subject, texts)"

    def _page_title(self) -> str:
        return f"heads that attend alike · {self.origin.model}"

    def _to_record(self) -> tuple[dict[str, Any], dict[str, Any]]:
        return self._header(), {"distances": self.distances}

    @classmethod
    def _from_record(cls, header: Mapping[str, Any], arrays: Mapping[str, Any]) -> "HeadRedundancy":
        return cls.from_dict({**header, **arrays})

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> "HeadRedundancy":
        """Read what `to_dict` returned."""
        return cls(
            tuple(Site(*site) for site in record["sites"]),
            np.asarray(record["distances"], dtype=np.float64),
            record["examples"],
            Origin.from_dict(record["origin"]),
            tuple(record["notes"]),
        )

    def __repr__(self) -> str:
        return f"HeadRedundancy({len(self.distances)} heads, {self.examples} texts)"
