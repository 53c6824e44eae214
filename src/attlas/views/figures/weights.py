"""The arrays of a payload that figures draw: attention maps, and scores of what was written."""

from base64 import b64decode
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from attlas.errors import UnknownNameError, UsageError
from attlas.views.figures.paper import shorten
from attlas.views.map_codes import read_site
from attlas.views.units import layer_names

Payload = Mapping[str, Any]


@dataclass(frozen=True, eq=False)
class DrawnSite:
    """The weights of one site, `[head, query, key]`, and the labels of both axes."""

    name: str
    kind: str
    layer: int
    weights: NDArray[np.float64]
    queries: tuple[int, ...]
    keys: tuple[int, ...]
    labels: tuple[str, ...]  # of all tokens
    title: str = ""  # what readers call it

    @property
    def query_labels(self) -> list[str]:
        """The tokens that attend."""
        return [self.labels[place] for place in self.queries]

    @property
    def key_labels(self) -> list[str]:
        """The tokens that are attended to."""
        return [self.labels[place] for place in self.keys]

    def head(self, head: int | None) -> NDArray[np.float64]:
        """The weights of a head, query × key, or the mean over heads."""
        count = len(self.weights)
        if head is None:
            return np.asarray(self.weights.mean(axis=0))
        if not isinstance(head, int) or not -count <= head < count:
            raise UsageError(f"no head {head!r} at {self.name}: it has heads 0 to {count - 1}")
        return np.asarray(self.weights[head])


def all_sites(payload: Payload) -> list[DrawnSite]:
    """Every site of the maps of a payload."""
    found = payload.get("maps")
    if not found or not found["sites"]:
        raise UsageError('there are no maps to draw: explain with maps=True, or plot "tokens"')
    labels = tuple(shorten(token["label"], 18) for token in payload["tokens"])
    titles = layer_names(each["name"] for each in found["sites"])
    return [_site(each, labels, titles[each["name"]]) for each in found["sites"]]


def one_site(payload: Payload, layer: Any) -> DrawnSite:
    """The site of a name, such as `encoder.1`, or of a number; the last one for None."""
    sites = all_sites(payload)
    if isinstance(layer, str):
        by_name = {site.name: site for site in sites}
        if layer not in by_name:
            raise UnknownNameError("layer", layer, by_name)
        return by_name[layer]
    number = -1 if layer is None else layer
    if not isinstance(number, int) or not -len(sites) <= number < len(sites):
        names = f"{sites[0].name} to {sites[-1].name}"
        raise UsageError(f"no layer {layer!r}: use a name, {names}, or 0 to {len(sites) - 1}")
    return sites[number]


def _site(given: Payload, labels: Sequence[str], title: str) -> DrawnSite:
    places = tuple(given["queries"]), tuple(given["keys"])
    weights = np.asarray(read_site(given), dtype=np.float64)
    named = given["name"], given["kind"], given["layer"]
    return DrawnSite(*named, weights, *places, tuple(labels), title)


def generation_scores(payload: Payload) -> NDArray[np.float64]:
    """The scores of what was written, output × input."""
    found = np.frombuffer(b64decode(payload["data"]), "<f4")
    return found.reshape(payload["shape"]).astype(float)
