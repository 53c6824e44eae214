"""The table of a report: methods by measures."""

from collections.abc import Iterator, Sequence

import numpy as np
from numpy.typing import NDArray

from attlas.auditing.collected import Collected
from attlas.auditing.verdict.verdict import as_figure
from attlas.auditing.work.explained import CONTROLS
from attlas.mathematics.intervals import bootstrap_means
from attlas.mathematics.significance import sign_flip
from attlas.measures import MEASURES, is_circular
from attlas.methods import METHODS
from attlas.results.support.report_sections import (
    Cell,
    Column,
    Figure,
    MethodRow,
    ReportTable,
)
from attlas.shapes import TextGroups

SIGNIFICANT = 0.05


def make_table(collected: Collected) -> ReportTable:
    """Methods by measures: each figure with its interval, and which one is significantly best."""
    columns = list(_columns(collected))
    known = set(collected.values["method"].unique())
    names = [*collected.methods, *(each for each in CONTROLS if each in known)]
    cells: dict[str, list[Cell]] = {name: [] for name in names}
    for column in columns:
        for name, cell in _cells(collected, column, names).items():
            cells[name].append(cell)
    rows = tuple(MethodRow(name, _family(name), tuple(own)) for name, own in cells.items())
    return ReportTable(tuple(columns), rows)


def _family(name: str) -> str:
    return "control" if name in CONTROLS else METHODS[name].family


def _columns(collected: Collected) -> Iterator[Column]:
    known = collected.values[["measure", "removal"]].drop_duplicates()
    pairs = {(str(measure), str(removal)) for measure, removal in known.to_numpy()}
    for name in MEASURES.names():
        for removal in ("", *collected.removals):
            if (name, removal) in pairs:
                yield Column(name, removal, MEASURES[name].better, MEASURES[name].kind)


def _cells(collected: Collected, column: Column, names: list[str]) -> dict[str, Cell]:
    values, chance = (
        collected.of_measure(column.measure, column.removal, kind).reindex(columns=names)
        for kind in ("value", "shuffled")
    )
    groups = collected.groups_of(values.index.tolist())
    array = values.to_numpy(dtype=np.float64)
    means = bootstrap_means(array, collected.seed, groups)
    sign = 1.0 if column.better == "higher" else -1.0
    differences = sign * (array - chance.to_numpy(dtype=np.float64))
    tested = [place for place, name in enumerate(names) if name not in CONTROLS]
    p = np.full(len(names), np.nan)
    if tested and not np.isnan(differences[:, tested]).all():
        p[tested] = sign_flip(differences[:, tested], collected.seed, groups).adjusted
    circular = [_is_circular(column, name) for name in names]
    allowed = [place for place in tested if not circular[place] and means[place].inputs]
    best = _best(sign * array, allowed, collected.seed, groups)
    cells = {}
    for place, name in enumerate(names):
        if circular[place]:
            cells[name] = Cell(Figure(None), note="circular: it is computed by this removal")
        elif not means[place].inputs:
            cells[name] = Cell(Figure(None), note=_missing(collected, column.measure, name))
        else:
            own = None if np.isnan(p[place]) else float(p[place])
            cells[name] = Cell(as_figure(means[place]), best == place, own)
    return cells


def _is_circular(column: Column, name: str) -> bool:
    return name in METHODS.names() and is_circular(column.measure, name, column.removal)


def _missing(collected: Collected, measure: str, name: str) -> str:
    """Why a method has no figure of a measure."""
    refused = collected.unmeasured.get((measure, name))
    return refused or collected.refused.get(name, "not asked")


def _best(
    values: NDArray[np.float64], places: Sequence[int], seed: int, groups: TextGroups | None
) -> int | None:
    """The place of the method that is significantly above all others; None if there is none."""
    if len(places) < 2:
        return None
    means = {place: float(np.nanmean(values[:, place])) for place in places}
    first = max(means, key=means.__getitem__)
    others = [place for place in places if place != first]
    beyond = values[:, [first]] - values[:, others]
    known = ~np.isnan(beyond).all(axis=0)
    if not known.all():
        return None
    return first if (sign_flip(beyond, seed, groups).adjusted < SIGNIFICANT).all() else None
