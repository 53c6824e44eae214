"""Answers that are known: a few bytes for each set of tokens, found by its bits."""

from typing import Any

import numpy as np
from numpy.typing import NDArray

from attlas.shapes import WayMarks, Ways, WayScores

Keys = NDArray[Any]  # strings of bytes, all of one length


class Answers:
    """What a model said of one text without some of its tokens, by the set of them."""

    def __init__(self) -> None:
        self._keys: Keys = np.empty(0, dtype="S1")  # sorted
        self._log_probability = np.empty(0, dtype=np.float32)
        self._chosen = np.empty(0, dtype=bool)

    def __len__(self) -> int:
        return len(self._keys)

    def unknown(self, ways: Ways) -> Ways:
        """Those that have no answer, each once."""
        keys, first = np.unique(_keys(ways), return_index=True)
        return ways[first[~self._has(keys)]]

    def _has(self, keys: Keys) -> NDArray[np.bool_]:
        if not len(self):
            return np.zeros(len(keys), dtype=bool)
        places = np.searchsorted(self._keys, keys).clip(max=len(self) - 1)
        found: NDArray[np.bool_] = self._keys[places] == keys
        return found

    def add(self, ways: Ways, log_probability: WayScores, chosen: WayMarks) -> None:
        """Keep the answers to ways that had none."""
        new = _keys(ways)
        keys = np.concatenate([self._keys.astype(new.dtype), new])
        order = np.argsort(keys)
        self._keys = keys[order]
        both = np.concatenate([self._log_probability, log_probability.astype(np.float32)])
        self._log_probability = both[order]
        self._chosen = np.concatenate([self._chosen, chosen])[order]

    def of(self, ways: Ways) -> tuple[WayScores, WayMarks] | None:
        """The log-probability and the choice in each of these ways, if all are known."""
        if len(ways) and not len(self):
            return None
        keys = _keys(ways)
        places = np.searchsorted(self._keys, keys)
        np.minimum(places, len(self) - 1, out=places)
        if not (self._keys[places] == keys).all():
            return None
        return self._log_probability[places].astype(np.float64), self._chosen[places]


def _keys(ways: Ways) -> Keys:
    """The bits of each way as one string of bytes."""
    bits = np.packbits(ways, axis=1)
    if not bits.shape[1]:  # a text without content has one way
        bits = np.zeros((len(ways), 1), dtype=np.uint8)
    keys: Keys = np.ascontiguousarray(bits).view(f"S{bits.shape[1]}")[:, 0]
    return keys
