"""Groups of texts that belong together, such as a text and its counterfactual."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from attlas.errors import UsageError
from attlas.shapes import TextGroups


def summed_by_group(values: NDArray[Any], groups: TextGroups | None) -> NDArray[np.float64]:
    """The sum over the texts (first axis) of each group; without groups, the values themselves."""
    if groups is None:
        return values.astype(np.float64)
    if len(groups) != len(values):
        raise UsageError(f"{len(groups)} texts have a group, but {len(values)} have values")
    names, group = np.unique(groups, return_inverse=True)
    sums = np.zeros((len(names), *values.shape[1:]))
    np.add.at(sums, group, values)
    return sums


def halves(
    count: int, groups: TextGroups | None, seed: int
) -> tuple[NDArray[np.int64], NDArray[np.int64]]:
    """Two random halves of the texts, each in order; texts of a group stay together."""
    group = np.arange(count) if groups is None else np.unique(groups, return_inverse=True)[1]
    names = np.unique(group)
    drawn = np.random.default_rng(seed).permutation(names)[: len(names) // 2]
    first = np.isin(group, drawn)
    return np.flatnonzero(first), np.flatnonzero(~first)
