"""HeadImportance: how important each head of a model is."""

from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from typing import Any, ClassVar

import numpy as np

from attlas.errors import UsageError
from attlas.results.maps import Site
from attlas.results.support.frames import Frame, frame
from attlas.results.support.origin import Origin, subject_line
from attlas.results.support.result import Result
from attlas.shapes import HeadVector

Head = tuple[str, int]  # the name of its site, and its number at that site
COLUMNS = ["site", "head", "importance", "low", "high", "rank"]


@dataclass(frozen=True)
class Correlation:
    """How similar two rankings of the same heads are, by rank (Spearman) and by value (Pearson)."""

    spearman: float
    pearson: float
    heads: int


@dataclass(frozen=True, eq=False)
class HeadImportance(Result):
    """The importance of every head with its 95 % interval, in the order of `sites`."""

    view_kind: ClassVar[str] = "heads"
    record_kind: ClassVar[str] = "head importance"

    sites: tuple[Site, ...]
    mean: HeadVector
    low: HeadVector
    high: HeadVector
    examples: int
    origin: Origin
    notes: tuple[str, ...] = ()

    def __post_init__(self) -> None:
        count = sum(site.heads for site in self.sites)
        for name in ("mean", "low", "high"):
            if len(getattr(self, name)) != count:
                raise UsageError(f"{len(getattr(self, name))} values of {name}, but {count} heads")

    def __len__(self) -> int:
        """How many heads there are."""
        return len(self.mean)

    @property
    def by(self) -> str:
        """The name of the ranking."""
        return self.origin.method

    @property
    def heads(self) -> list[Head]:
        """Every head, in the order of `mean`."""
        return [(site.name, head) for site in self.sites for head in range(site.heads)]

    def order(self) -> list[Head]:
        """The heads from the most to the least important; ties are in a fixed random order."""
        heads = self.heads
        # In the model's own order, ties would always favour the lower layers.
        shuffled = np.random.default_rng(0).permutation(len(heads))
        return [heads[place] for place in np.lexsort((shuffled, -self.mean))]

    def lowest(self, count: int) -> list[Head]:
        """The `count` least important heads, in the form that `attlas.prune` takes."""
        if not 0 <= count <= len(self):
            raise UsageError(
                f"the lowest {count} of {len(self)} heads: the count is from 0 to {len(self)}"
            )
        return self.order()[len(self) - count :]

    def correlation(self, other: "HeadImportance") -> Correlation:
        """Compare with the importance from other texts, another model or another ranking.

        Both must have the same sites. If all values of one are equal, the correlation is 0.
        """
        from scipy.stats import pearsonr, spearmanr

        if self.sites != other.sites:
            raise UsageError(
                f"{self.origin.model} and {other.origin.model} do not have the same sites and heads"
            )
        if not (np.ptp(self.mean) and np.ptp(other.mean)):
            return Correlation(0.0, 0.0, len(self))
        return Correlation(
            float(spearmanr(self.mean, other.mean).statistic),
            float(pearsonr(self.mean, other.mean).statistic),
            len(self),
        )

    def to_pandas(self) -> Frame:
        """One row for each head; rank 1 is the most important."""
        return frame(list(self._rows()), columns=COLUMNS)

    def table(self) -> Frame:
        """The importance as a table, site × head; missing heads are NaN."""
        return self.to_pandas().pivot_table(
            index="site", columns="head", values="importance", sort=False
        )

    def _rows(self) -> Iterator[tuple[str, int, float, float, float, int]]:
        ranks = {head: rank for rank, head in enumerate(self.order(), 1)}
        values = zip(self.mean, self.low, self.high, strict=True)
        for head, (mean, low, high) in zip(self.heads, values, strict=True):
            yield *head, float(mean), float(low), float(high), ranks[head]

    def to_dict(self) -> dict[str, Any]:
        """Everything, as JSON."""
        arrays = {name: getattr(self, name).tolist() for name in ("mean", "low", "high")}
        return {**self._header(), **arrays}

    def _header(self) -> dict[str, Any]:
        return {
            "sites": [[site.kind, site.layer, site.heads] for site in self.sites],
            "examples": self.examples,
            "origin": self.origin.to_dict(),
            "notes": list(self.notes),
        }

    def payload_section(self) -> dict[str, Any]:
        """What a view draws of one ranking, alone or beside others."""
        rows = [dict(zip(COLUMNS, row, strict=True)) for row in self._rows()]
        sites = [
            {"name": site.name, "heads": [row for row in rows if row["site"] == site.name]}
            for site in self.sites
        ]
        return {"by": self.by, "reading": self.origin.reading, "sites": sites}

    def payload(self) -> dict[str, Any]:
        """What a page, a notebook or a terminal draws."""
        return {
            "kind": self.view_kind,
            "version": 1,
            "headline": "Which heads matter?",
            **self.origin.view_facts(),
            "tokens": [],
            "importances": [self.payload_section()],
            "charts": [],
            "notes": [f"Mean over {self.examples} texts.", *self.notes],
            "code": self.code(),
        }

    def code(self) -> str:
        """The Python lines that compute this again; you must fill in the data yourself."""
        options = "".join(f", {key}={value!r}" for key, value in self.origin.options.items())
        load = subject_line(self.origin.model)
        data = "data = ...  # the texts with their labels"
        call = f"attlas.head_importance(subject, data, {self.by!r}{options})"
        return f"import attlas\n{load}\n{data}\n{call}"

    def _page_title(self) -> str:
        return f"heads by {self.by} · {self.origin.model}"

    def _to_record(self) -> tuple[dict[str, Any], dict[str, Any]]:
        return self._header(), {name: getattr(self, name) for name in ("mean", "low", "high")}

    @classmethod
    def _from_record(cls, header: Mapping[str, Any], arrays: Mapping[str, Any]) -> "HeadImportance":
        return cls.from_dict({**header, **arrays})

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> "HeadImportance":
        """Read what `to_dict` returned."""
        mean, low, high = (
            np.asarray(record[name], dtype=np.float64) for name in ("mean", "low", "high")
        )
        return cls(
            tuple(Site(*site) for site in record["sites"]),
            mean,
            low,
            high,
            record["examples"],
            Origin.from_dict(record["origin"]),
            tuple(record["notes"]),
        )

    def __repr__(self) -> str:
        site, head = self.order()[0]
        return f"HeadImportance(by {self.by}, {len(self)} heads, most important: {site} {head})"
