"""HeadRedundancy: which heads attend alike."""

from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd

from attlas import views
from attlas.errors import UsageError
from attlas.results.head_importance import Head
from attlas.results.maps import Site
from attlas.results.support.files import read_record, write_record
from attlas.results.support.origin import Origin
from attlas.results.support.showing import Shown
from attlas.shapes import HeadPairs

MOST_SHOWN = 20


@dataclass(frozen=True, eq=False)
class HeadRedundancy(Shown):
    """How far apart the attention of every two heads is, in bits; nan where they do not compare."""

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
        """The pairs of heads that attend most alike, the nearest first."""
        one, other = np.triu_indices(len(self.distances), k=1)
        values = self.distances[one, other]
        there = np.flatnonzero(np.isfinite(values))
        order = there[np.argsort(values[there], kind="stable")][:count]
        heads = self.heads
        return [(heads[one[i]], heads[other[i]], float(values[i])) for i in order]

    def to_pandas(self) -> pd.DataFrame:
        """The table, head × head, each named by its site and its number there."""
        index = pd.MultiIndex.from_tuples(self.heads, names=["site", "head"])
        return pd.DataFrame(self.distances, index=index, columns=index)

    def to_dict(self) -> dict[str, Any]:
        """Everything, as JSON; None where two heads do not compare."""
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
            "kind": "redundancy",
            "version": 1,
            **self.origin.shown(),
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
        """The Python lines that compute this again; the texts must be put in by hand."""
        load = f"subject = attlas.load({self.origin.model!r})"
        return f"import attlas\n{load}\ntexts = ...\nattlas.head_redundancy(subject, texts)"

    def to_html(self, path: str | PathLike[str]) -> Path:
        """Write a page that shows the table: one file, no network."""
        title = f"heads that attend alike · {self.origin.model}"
        return views.write_whole(path, views.page(self.payload(), title))

    def save(self, path: str | PathLike[str]) -> Path:
        """Write everything to one file: safetensors, with a header of JSON."""
        arrays = {"distances": self.distances}
        return write_record(path, "head redundancy", self._header(), arrays)

    @classmethod
    def load(cls, path: str | PathLike[str]) -> "HeadRedundancy":
        """Read what `save` wrote."""
        with read_record(path, "head redundancy") as (header, arrays):
            return cls(
                tuple(Site(*site) for site in header["sites"]),
                arrays["distances"],
                header["examples"],
                Origin.from_dict(header["origin"]),
                tuple(header["notes"]),
            )

    def __repr__(self) -> str:
        return f"HeadRedundancy({len(self.distances)} heads, {self.examples} texts)"
