"""The scores of a generation: of all that was written, and of each of its words or tokens."""

from base64 import b64decode
from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attlas.views.units import ShownUnit, scored_units, strongest

Written = tuple[ShownUnit, list[ShownUnit]]


def mean_units(payload: Mapping[str, Any]) -> list[ShownUnit]:
    """Every word, or else token, with its part in all that was written, on average."""
    return scored_units(payload, _mean(payload, _matrix(payload)).tolist())


def written_units(payload: Mapping[str, Any], count: int) -> list[Written]:
    """Every written word, or else token, and the units before it with the largest scores."""
    matrix, outputs = _matrix(payload), payload["outputs"]
    rows = {place: row for row, place in enumerate(outputs)}
    units = scored_units(payload, [0.0] * len(payload["tokens"]))
    unit_of = np.zeros(len(payload["tokens"]), dtype=np.int64)
    for index, unit in enumerate(units):
        unit_of[list(unit.positions)] = index
    found = []
    for unit in units:
        held = [rows[place] for place in unit.positions if place in rows]
        if held:
            sums = np.zeros(len(units))
            np.add.at(sums, unit_of, _mean(payload, matrix[held]))
            found.append((unit, _strongest(units, sums, count)))
    return found


def _strongest(
    units: Sequence[ShownUnit], sums: NDArray[np.float64], count: int
) -> list[ShownUnit]:
    """Those with the largest scores, of them that have one."""
    # A few more are looked at: special ones stand back.
    special = sum(unit.special for unit in units)
    order = np.argsort(-np.abs(sums), kind="stable")[: count + special]
    return strongest([replace(units[i], score=float(sums[i])) for i in order if sums[i]], count)


def _matrix(payload: Mapping[str, Any]) -> NDArray[np.float32]:
    return np.frombuffer(b64decode(payload["data"]), "<f4").reshape(payload["shape"])


def _mean(payload: Mapping[str, Any], rows: NDArray[np.float32]) -> NDArray[np.float64]:
    if not len(rows):
        return np.zeros(len(payload["tokens"]))
    mean: NDArray[np.float64] = rows.mean(axis=0, dtype=np.float64)
    return mean
