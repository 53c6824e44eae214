"""Figures by layer of the stack that is read out: of which layers, their means, and as JSON."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from attlas.errors import UsageError
from attlas.models.asking.open_model import OpenModel
from attlas.trials.support.scope import Scope


def chosen_layers(scope: Scope, subject: OpenModel, count: int, name: str) -> list[int]:
    """The layers of a scope: the last for the readout, the one that is named, or all of them."""
    if scope.kind == "token":
        raise UsageError(f"{name} is about hidden states by layer: not of the scope token")
    if scope.kind == "readout":
        return [count - 1]
    if scope.kind == "layer" and scope.layer is not None:
        return [site.layer for site in scope.sites(subject)]
    return list(range(count))


def layers_in_words(layers: Sequence[int]) -> str:
    """The layers, as a note says them."""
    one = len(layers) == 1
    return f"layer {layers[0]}" if one else f"layers {layers[0]} to {layers[-1]}, their mean"


def known_mean(values: NDArray[np.float64]) -> float:
    """The mean of what is a number; not a number where nothing is."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else float("nan")


def listed(values: Sequence[float] | NDArray[np.float64]) -> list[float | None]:
    """Numbers as JSON has them: None for what is not one."""
    return [None if np.isnan(each) else float(each) for each in values]
