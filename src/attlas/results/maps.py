"""Maps: attention-shaped results for one input, one `[head, query, key]` array for each site."""

import threading
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import cached_property
from operator import index
from os import PathLike
from pathlib import Path
from typing import Any, ClassVar, TypeAlias, overload

import numpy as np
from numpy.typing import NDArray

from attlas import views
from attlas.errors import UnknownNameError, UsageError
from attlas.results.support.frames import Frame, frame
from attlas.results.support.pictures import picture_rows
from attlas.results.support.result import Result
from attlas.results.support.words import token_rows
from attlas.shapes import SiteMap
from attlas.tokens import Tokens
from attlas.views.map_codes import BYTES, site_sections

CORNER = 2  # queries and keys of a map that are drawn to see that it can be
COLUMNS = ["site", "head", "query", "query_token", "key", "key_token", "weight"]


AnyArray = NDArray[np.floating[Any]]


class LateArrays(Sequence):  # type: ignore[type-arg]  # a checker would look at its items
    """Arrays whose shapes are known; all are brought when the first of them is looked at."""

    def __init__(
        self, shapes: Sequence[tuple[int, ...]], bring: Callable[[], Sequence[AnyArray]]
    ) -> None:
        self.shapes = tuple(shapes)
        self._bring: Callable[[], Sequence[AnyArray]] | None = bring
        self._arrays: tuple[AnyArray, ...] = ()
        self._guard = threading.RLock()

    @property
    def is_here(self) -> bool:
        """Whether somebody has looked."""
        return self._bring is None

    def __len__(self) -> int:
        return len(self.shapes)

    @overload
    def __getitem__(self, place: int) -> AnyArray: ...
    @overload
    def __getitem__(self, place: slice) -> tuple[AnyArray, ...]: ...
    def __getitem__(self, place: int | slice) -> AnyArray | tuple[AnyArray, ...]:
        return self._all()[place]

    def __reduce__(self) -> tuple[Any, ...]:
        """Another process gets the arrays."""
        return tuple, (self._all(),)

    def _all(self) -> tuple[AnyArray, ...]:
        with self._guard:
            if self._bring is not None:
                self._arrays = tuple(self._bring())
                self._bring = None  # with what it held on the GPU
            return self._arrays


Arrays: TypeAlias = tuple[AnyArray, ...] | LateArrays


def shapes_of(arrays: Arrays) -> list[tuple[int, ...]]:
    """The shape of each, without bringing any."""
    if isinstance(arrays, LateArrays):
        return list(arrays.shapes)
    return [each.shape for each in arrays]


@dataclass(frozen=True)
class Site:
    """One place where attention happens; layers of a kind are numbered in the order of calls."""

    kind: str
    layer: int
    heads: int

    @cached_property
    def name(self) -> str:
        """The name of the site, such as `encoder.0`; a map over the whole model is `all`."""
        return self.kind if self.kind == "all" else f"{self.kind}.{self.layer}"


@dataclass(frozen=True, eq=False)
class Maps(Result):
    """Attention, or scores of the same shape, at the sites of one input.

    `queries` and `keys` hold, for each site, the positions in `tokens` of its rows and columns.
    `maps["encoder.1"]` and `maps[1]` are the array of a site, by its name or its number; iterating
    gives every site with its array.
    """

    view_kind: ClassVar[str] = "maps"
    record_kind: ClassVar[str] = "maps"

    sites: tuple[Site, ...]
    weights: Arrays  # each `[head, query, key]`; sizes may differ
    tokens: Tokens
    queries: tuple[tuple[int, ...], ...]
    keys: tuple[tuple[int, ...], ...]
    signed: bool = False
    shows: str = "attention"  # what a weight is: attention, attention × gradient, relevance, …

    def __post_init__(self) -> None:
        axes = zip(self.queries, self.keys, strict=True)
        shapes = shapes_of(self.weights)
        for site, shape, (queries, keys) in zip(self.sites, shapes, axes, strict=True):
            if shape[1:] != (len(queries), len(keys)):
                raise UsageError(
                    f"the map at {site.name} has shape {shape}, "
                    f"not {len(queries)} queries by {len(keys)} keys"
                )
            places = (*queries, *keys)
            if places and not 0 <= min(places) <= max(places) < len(self.tokens):
                raise UsageError(
                    f"the map at {site.name} names tokens beyond the {len(self.tokens)} there are"
                )

    def __len__(self) -> int:
        """How many sites there are."""
        return len(self.sites)

    def __iter__(self) -> Iterator[tuple[Site, SiteMap]]:
        return iter(zip(self.sites, self.weights, strict=True))

    def __contains__(self, name: object) -> bool:
        """Whether there is a site of this name."""
        return name in [site.name for site in self.sites]

    def __getitem__(self, site: Any) -> SiteMap:
        """The array of a site, by its name or its number: `maps["encoder.0"]`, `maps[0]`."""
        return self.weights[self._index(site)]

    def query_tokens(self, site: Any) -> tuple[str, ...]:
        """The tokens that attend, one for each row of the site's array."""
        return tuple(self.tokens[i] for i in self.queries[self._index(site)])

    def key_tokens(self, site: Any) -> tuple[str, ...]:
        """The tokens that are attended to, one for each column of the site's array."""
        return tuple(self.tokens[i] for i in self.keys[self._index(site)])

    def _index(self, site: Any) -> int:
        names = [each.name for each in self.sites]
        if isinstance(site, str):
            if site not in names:
                raise UnknownNameError("site", site, names)
            return names.index(site)
        try:
            return range(len(names))[index(site)]
        except (IndexError, TypeError):
            raise UsageError(f"no map at {site!r}: {self._allowed()}") from None

    def _allowed(self) -> str:
        count = len(self.sites)
        if not count:
            return "there are no sites"
        first, last = self.sites[0].name, self.sites[-1].name
        return f"use a name, {first!r} to {last!r}, or a number from {-count} to {count - 1}"

    def to_pandas(self) -> Frame:
        """One row for each site, head, query and key."""
        from pandas import concat

        frames = [self._frame(index) for index in range(len(self))]
        return concat(frames, ignore_index=True) if frames else frame([], columns=COLUMNS)

    def _frame(self, index: int) -> Frame:
        weights, site = self.weights[index], self.sites[index]
        head, query, key = np.indices(weights.shape).reshape(3, -1)
        query_tokens = np.array(self.query_tokens(site.name), dtype=object)
        key_tokens = np.array(self.key_tokens(site.name), dtype=object)
        return frame(
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

    def payload(self, precision: str = BYTES) -> dict[str, Any]:
        """What a page, a notebook or a terminal draws."""
        return {
            "kind": self.view_kind,
            "version": 1,
            "headline": self._page_title(),
            "tokens": token_rows(self.tokens),
            "sources": dict(self.tokens.sources),
            "pictures": picture_rows(self.tokens),
            "maps": self.payload_section(precision),
        }

    def to_html(self, path: str | PathLike[str], *, precision: str = BYTES) -> Path:
        """Write a page that shows every head: one file that needs no network.

        A weight is a byte, or with `precision="float16"` a number of three digits in twice the
        space.
        """
        return views.write_whole(path, views.page(self.payload(precision), self._page_title()))

    def payload_section(self, precision: str = BYTES) -> dict[str, Any]:
        """What a view draws of the maps, alone or within an explanation."""
        given = [
            (site.name, (site.kind, site.layer), axes, array)
            for (site, array), axes in zip(
                self, zip(self.queries, self.keys, strict=True), strict=True
            )
        ]
        sites = site_sections(given, precision)
        return {"signed": self.signed, "shows": self.shows, "sites": sites}

    def _sketch(self) -> "Maps":
        """The corner of each map; that all are numbers, and of one shape, is known without it."""
        for site, array in self:
            if not np.isfinite([array.min(initial=0.0), array.max(initial=0.0)]).all():
                raise UsageError(f"the map at {site.name} has values that are not finite")
        weights = tuple(array[:, :CORNER, :CORNER] for array in self.weights)
        queries = tuple(each[:CORNER] for each in self.queries)
        keys = tuple(each[:CORNER] for each in self.keys)
        return replace(self, weights=weights, queries=queries, keys=keys)

    def header(self) -> dict[str, Any]:
        """What is saved beside the arrays."""
        return {
            "sites": [[site.kind, site.layer, site.heads] for site in self.sites],
            "queries": [list(each) for each in self.queries],
            "keys": [list(each) for each in self.keys],
            "signed": self.signed,
            **({} if self.shows == "attention" else {"shows": self.shows}),
        }

    def arrays(self) -> dict[str, SiteMap]:
        """The arrays as they are saved, by name."""
        return {f"maps.{index}": array for index, array in enumerate(self.weights)}

    @classmethod
    def restore(
        cls, header: Mapping[str, Any], arrays: Mapping[str, Any], tokens: Tokens
    ) -> "Maps":
        """Read what `header` and `arrays` returned."""
        sites = tuple(Site(kind, layer, heads) for kind, layer, heads in header["sites"])
        return cls(
            sites,
            tuple(arrays[f"maps.{index}"] for index in range(len(sites))),
            tokens,
            tuple(tuple(each) for each in header["queries"]),
            tuple(tuple(each) for each in header["keys"]),
            header["signed"],
            header.get("shows", "attention"),
        )

    def to_dict(self) -> dict[str, Any]:
        """Everything, as JSON."""
        weights = [array.astype(np.float64).tolist() for array in self.weights]
        return {"maps": self.header(), "tokens": self.tokens.to_dict(), "weights": weights}

    @classmethod
    def from_dict(cls, record: Mapping[str, Any]) -> "Maps":
        """Read what `to_dict` returned; the weights come back in single precision."""
        header = record["maps"]
        shapes = [
            (heads, len(queries), len(keys))
            for (_, _, heads), queries, keys in zip(
                header["sites"], header["queries"], header["keys"], strict=True
            )
        ]
        arrays = {
            f"maps.{place}": np.array(weights, dtype=np.float32).reshape(shape)
            for place, (weights, shape) in enumerate(zip(record["weights"], shapes, strict=True))
        }
        return cls._from_record(record, arrays)

    def _to_record(self) -> tuple[dict[str, Any], dict[str, Any]]:
        return {"maps": self.header(), "tokens": self.tokens.to_dict()}, dict(self.arrays())

    @classmethod
    def _from_record(cls, header: Mapping[str, Any], arrays: Mapping[str, Any]) -> "Maps":
        return cls.restore(header["maps"], arrays, Tokens.from_dict(header["tokens"]))

    def _page_title(self) -> str:
        looks = self.shows == "attention"
        return "Where does each token look?" if looks else f"Maps of {self.shows}"

    def __repr__(self) -> str:
        known = zip(self.sites, shapes_of(self.weights), strict=True)
        shapes = ", ".join(f"{site.name} {shape}" for site, shape in list(known)[:2])
        return f"Maps({len(self)} sites: {shapes}{', …' if len(self) > 2 else ''})"
