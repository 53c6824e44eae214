"""The layers that a scope chooses, for trials about hidden states, and means of their figures."""

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from attlas.errors import UsageError
from attlas.models.asking.open_model import OpenModel
from attlas.trials.support.scope import Scope


def chosen_layers(scope: Scope, subject: OpenModel, count: int, name: str) -> list[int]:
    """The layers of a scope: the last one for `readout`, the named one for `layer`, or all."""
    if scope.kind == "token":
        raise UsageError(
            f"{name} is about hidden states, not about the scope token; "
            "allowed: readout, layer, all"
        )
    if scope.kind == "readout":
        return [count - 1]
    if scope.kind == "layer" and scope.layer is not None:
        return [site.layer for site in scope.sites(subject)]
    return list(range(count))


def layers_in_words(layers: Sequence[int]) -> str:
    """The layers in words, for a note."""
    one = len(layers) == 1
    return f"layer {layers[0]}" if one else f"the mean of layers {layers[0]} to {layers[-1]}"


def known_mean(values: NDArray[np.float64]) -> float:
    """The mean of the values that are not NaN; NaN if there are none."""
    known = values[~np.isnan(values)]
    return float(known.mean()) if known.size else float("nan")


def json_numbers(values: Sequence[float] | NDArray[np.float64]) -> list[float | None]:
    """The numbers for JSON, with None for NaN."""
    return [None if np.isnan(each) else float(each) for each in values]
