"""The tables of a report, from the figures of every text."""

from collections.abc import Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from attlas.auditing.verdict.verdict import figure
from attlas.auditing.work.cases import CEILING, CONTROLS, SHUFFLED
from attlas.mathematics.intervals import Estimate, bootstrap_means
from attlas.mathematics.significance import sign_flip
from attlas.mathematics.standing import Evidence, evidence
from attlas.measures import MEASURES, is_circular
from attlas.methods import METHODS
from attlas.removing.ceilings import AIMS
from attlas.results.support.report_sections import (
    Cell,
    Column,
    Figure,
    MethodRow,
    ReportTable,
)
from attlas.shapes import TextGroups

SURE = 0.05
DRAWS = 1000
AXIS = "share of the tokens removed or kept"


@dataclass(frozen=True, eq=False)
class Found:
    """The figures of every text, in long tables, and what is needed to read them."""

    values: pd.DataFrame
    curves: pd.DataFrame
    agreement: pd.DataFrame
    groups: TextGroups | None  # of all texts
    refused: Mapping[str, str]
    seed: int

    @cached_property
    def methods(self) -> list[str]:
        """The methods that gave something, controls left out."""
        known = set(self.values["method"].unique())
        return [name for name in METHODS.names() if name in known and name not in CONTROLS]

    @property
    def families(self) -> dict[str, str]:
        """The family of each method."""
        return {name: METHODS[name].family for name in self.methods}

    @cached_property
    def removals(self) -> list[str]:
        """The removals that were tried, in order."""
        return [str(name) for name in self.values["removal"].unique() if name]

    def circular(self) -> set[tuple[str, str]]:
        """The methods that a removal would hold to themselves."""
        return {
            (name, removal)
            for name in self.methods
            for removal in self.removals
            if is_circular(AIMS[0], name, removal)
        }

    def evidence(self, removals: Collection[str]) -> tuple[Evidence, TextGroups | None]:
        """What the verdict rests on under these removals, and the groups of its texts."""
        return evidence(self._judged(removals)), self.of_texts(self.numbers(removals))

    def numbers(self, removals: Collection[str]) -> list[int]:
        """The texts that there is such evidence of, in its order."""
        return sorted(self._judged(removals)["text"].unique().tolist())

    def _judged(self, removals: Collection[str]) -> pd.DataFrame:
        rows = self.values
        rows = rows[rows["removal"].isin(removals) & rows["measure"].isin(AIMS)]
        return rows[rows["method"].isin({*self.methods, SHUFFLED, CEILING})]

    def of_texts(self, numbers: Sequence[int]) -> TextGroups | None:
        """The groups of these texts."""
        return None if self.groups is None else self.groups[list(numbers)]


def make_table(found: Found) -> ReportTable:
    """Methods by measures, each figure with its interval, and which is best beyond doubt."""
    columns = list(_columns(found))
    known = set(found.values["method"].unique())
    names = [*found.methods, *(each for each in CONTROLS if each in known)]
    cells: dict[str, list[Cell]] = {name: [] for name in names}
    for column in columns:
        for name, cell in _cells(found, column, names).items():
            cells[name].append(cell)
    rows = tuple(MethodRow(name, _family(name), tuple(own)) for name, own in cells.items())
    return ReportTable(tuple(columns), rows)


def _family(name: str) -> str:
    return "control" if name in CONTROLS else METHODS[name].family


def _columns(found: Found) -> Iterator[Column]:
    known = found.values[["measure", "removal"]].drop_duplicates()
    pairs = {(str(measure), str(removal)) for measure, removal in known.to_numpy()}
    for name in MEASURES.names():
        for removal in ("", *found.removals):
            if (name, removal) in pairs:
                yield Column(name, removal, MEASURES[name].better, MEASURES[name].kind)


def _cells(found: Found, column: Column, names: list[str]) -> dict[str, Cell]:
    rows = found.values
    own = rows[(rows["measure"] == column.measure) & (rows["removal"] == column.removal)]
    values = own.pivot(index="text", columns="method", values="value").reindex(columns=names)
    chance = own.pivot(index="text", columns="method", values="shuffled").reindex(columns=names)
    groups = found.of_texts(values.index.tolist())
    array = values.to_numpy(dtype=np.float64)
    means = bootstrap_means(array, found.seed, groups)
    sign = 1.0 if column.better == "higher" else -1.0
    differences = sign * (array - chance.to_numpy(dtype=np.float64))
    tested = [place for place, name in enumerate(names) if name not in CONTROLS]
    p = np.full(len(names), np.nan)
    if tested and not np.isnan(differences[:, tested]).all():
        p[tested] = sign_flip(differences[:, tested], found.seed, groups).adjusted
    circular = [_is_circular(column, name) for name in names]
    allowed = [place for place in tested if not circular[place] and means[place].inputs]
    best = _best(sign * array, allowed, found.seed, groups)
    return {
        name: _cell(means[place], best == place, float(p[place]), circular[place], found, name)
        for place, name in enumerate(names)
    }


def _is_circular(column: Column, name: str) -> bool:
    return name in METHODS.names() and is_circular(column.measure, name, column.removal)


def _cell(mean: Estimate, best: bool, p: float, circular: bool, found: Found, name: str) -> Cell:
    if circular:
        return Cell(Figure(None), note="circular: it was computed in this very way")
    if not mean.inputs:
        return Cell(Figure(None), note=found.refused.get(name, "not asked"))
    return Cell(figure(mean), best, None if np.isnan(p) else p)


def _best(
    values: NDArray[np.float64], places: Sequence[int], seed: int, groups: TextGroups | None
) -> int | None:
    """The place of the method that is above all others beyond doubt; None where there is none."""
    if len(places) < 2:
        return None
    means = {place: float(np.nanmean(values[:, place])) for place in places}
    first = max(means, key=means.__getitem__)
    others = [place for place in places if place != first]
    beyond = values[:, [first]] - values[:, others]
    known = ~np.isnan(beyond).all(axis=0)
    if not known.all():
        return None
    return first if (sign_flip(beyond, seed, groups).adjusted < SURE).all() else None
