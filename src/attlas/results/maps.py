"""Maps: attention-shaped results for one input, one `[head, query, key]` array for each site."""

from base64 import b64encode
from collections.abc import Iterator, Mapping
from dataclasses import dataclass
from os import PathLike
from pathlib import Path
from typing import Any

import numpy as np
import pandas as pd
from numpy.typing import NDArray

from attlas import views
from attlas.errors import UnknownNameError, UsageError
from attlas.results.support.files import read_record, write_record
from attlas.shapes import SiteMap
from attlas.tokens import Tokens

COLUMNS = ["site", "head", "query", "query_token", "key", "key_token", "weight"]


@dataclass(frozen=True)
class Site:
    """One place where attention happens; layers are numbered by the order of call in their kind."""

    kind: str
    layer: int
    heads: int

    @property
    def name(self) -> str:
        """How the site is written: `encoder.0`; a map over the whole model is `all`."""
        return self.kind if self.kind == "all" else f"{self.kind}.{self.layer}"


@dataclass(frozen=True, eq=False)
class Maps:
    """Attention, or something of its shape, at the sites of one input.

    `queries` and `keys` say for each site which of `tokens` its rows and columns stand for.
    """

    sites: tuple[Site, ...]
    weights: tuple[NDArray[np.floating[Any]], ...]  # each `[head, query, key]`; sizes differ
    tokens: Tokens
    queries: tuple[tuple[int, ...], ...]
    keys: tuple[tuple[int, ...], ...]
    signed: bool = False

    def __post_init__(self) -> None:
        axes = zip(self.queries, self.keys, strict=True)
        for (site, array), (queries, keys) in zip(self, axes, strict=True):
            if array.shape[1:] != (len(queries), len(keys)):
                raise UsageError(
                    f"the map at {site.name} has shape {array.shape}, "
                    f"not {len(queries)} queries by {len(keys)} keys"
                )
            if not all(0 <= place < len(self.tokens) for place in (*queries, *keys)):
                raise UsageError(f"the map at {site.name} is about tokens that are not there")

    def __len__(self) -> int:
        return len(self.sites)

    def __iter__(self) -> Iterator[tuple[Site, SiteMap]]:
        return iter(zip(self.sites, self.weights, strict=True))

    def __getitem__(self, site: str) -> SiteMap:
        """The array of a site, by its name: `maps["encoder.0"]`."""
        return self.weights[self._index(site)]

    def query_tokens(self, site: str) -> tuple[str, ...]:
        """The tokens that look, one for each row of the site's array."""
        return tuple(self.tokens[i] for i in self.queries[self._index(site)])

    def key_tokens(self, site: str) -> tuple[str, ...]:
        """The tokens that are looked at, one for each column of the site's array."""
        return tuple(self.tokens[i] for i in self.keys[self._index(site)])

    def _index(self, name: str) -> int:
        names = [site.name for site in self.sites]
        if name not in names:
            raise UnknownNameError("site", name, names)
        return names.index(name)

    def to_pandas(self) -> pd.DataFrame:
        """One row for each site, head, query and key."""
        frames = [self._frame(index) for index in range(len(self))]
        return pd.concat(frames, ignore_index=True) if frames else pd.DataFrame(columns=COLUMNS)

    def _frame(self, index: int) -> pd.DataFrame:
        weights, site = self.weights[index], self.sites[index]
        head, query, key = np.indices(weights.shape).reshape(3, -1)
        query_tokens = np.array(self.query_tokens(site.name), dtype=object)
        key_tokens = np.array(self.key_tokens(site.name), dtype=object)
        return pd.DataFrame(
            {
                "site": site.name,
                "head": head,
                "query": query,
                "query_token": query_tokens[query],
                "key": key,
                "key_token": key_tokens[key],
                "weight": weights.ravel(),
            }
        )

    def payload(self) -> dict[str, Any]:
        """The maps as JSON, a byte a weight: what a page draws."""
        return {"signed": self.signed, "sites": [self._site(i) for i in range(len(self))]}

    def _site(self, index: int) -> dict[str, Any]:
        weights, site = self.weights[index].astype(np.float64), self.sites[index]
        if not np.isfinite(weights).all():
            raise UsageError(f"the map at {site.name} has values that are not finite")
        low, high = (float(weights.min()), float(weights.max())) if weights.size else (0.0, 0.0)
        steps = np.round((weights - low) / ((high - low) or 1.0) * 255).astype(np.uint8)
        return {
            "name": site.name,
            "kind": site.kind,
            "layer": site.layer,
            "queries": list(self.queries[index]),
            "keys": list(self.keys[index]),
            "shape": list(weights.shape),
            "low": low,
            "high": high,
            "data": b64encode(steps.tobytes()).decode("ascii"),
        }

    def header(self) -> dict[str, Any]:
        """All but the arrays, for saving."""
        return {
            "sites": [[site.kind, site.layer, site.heads] for site in self.sites],
            "queries": [list(each) for each in self.queries],
            "keys": [list(each) for each in self.keys],
            "signed": self.signed,
        }

    def arrays(self) -> dict[str, SiteMap]:
        """The arrays, for saving."""
        return {f"maps.{index}": array for index, array in enumerate(self.weights)}

    @classmethod
    def restore(
        cls, header: Mapping[str, Any], arrays: Mapping[str, Any], tokens: Tokens
    ) -> "Maps":
        """The maps that `header` and `arrays` were taken from."""
        sites = tuple(Site(kind, layer, heads) for kind, layer, heads in header["sites"])
        return cls(
            sites,
            tuple(arrays[f"maps.{index}"] for index in range(len(sites))),
            tokens,
            tuple(tuple(each) for each in header["queries"]),
            tuple(tuple(each) for each in header["keys"]),
            header["signed"],
        )

    def save(self, path: str | PathLike[str]) -> Path:
        """Write the maps to one file: safetensors, with the tokens in its header."""
        header = {"maps": self.header(), "tokens": self.tokens.to_dict()}
        return write_record(path, "maps", header, self.arrays())

    @classmethod
    def load(cls, path: str | PathLike[str]) -> "Maps":
        """Read what `save` wrote."""
        with read_record(path, "maps") as (header, arrays):
            return cls.restore(header["maps"], arrays, Tokens.from_dict(header["tokens"]))

    def to_html(self, path: str | PathLike[str]) -> Path:
        """Write a page that shows the maps: one file, no network."""
        return views.write_whole(path, views.page(self._page_payload(), "attention"))

    def _page_payload(self) -> dict[str, Any]:
        return {
            "kind": "maps",
            "version": 1,
            "tokens": token_rows(self.tokens),
            "sources": dict(self.tokens.sources),
            "grid": list(self.tokens.grid) if self.tokens.grid else None,
            "maps": self.payload(),
        }

    def __repr__(self) -> str:
        shapes = ", ".join(f"{s.name} {w.shape}" for s, w in list(self)[:2])
        return f"Maps({len(self)} sites: {shapes}{', …' if len(self) > 2 else ''})"


def token_rows(tokens: Tokens) -> list[dict[str, Any]]:
    """The tokens as JSON, a row each."""
    rows = zip(
        tokens, tokens.labels(), tokens.special, tokens.segments, tokens.spans(), strict=True
    )
    return [
        {
            "text": text,
            "label": label,
            "special": special,
            "segment": segment,
            "start": span[0] if span else None,
            "end": span[1] if span else None,
        }
        for text, label, special, segment, span in rows
    ]
