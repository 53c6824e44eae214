"""Selecting attention: which sites, heads and rows to hold, their size, and Maps of them."""

from collections.abc import Collection, Iterable, Sequence
from dataclasses import dataclass, replace
from typing import Any

from torch import Tensor

from attlas.errors import UnknownNameError, UnsupportedModelError, UsageError
from attlas.models.encoding.inputs import Inputs
from attlas.models.encoding.token_ids import is_number
from attlas.models.tap.call import Call
from attlas.results import Maps, Site
from attlas.results.maps import Arrays, shapes_of


@dataclass(frozen=True, eq=False)
class MapSelection:
    """The sites to read, and which heads and rows of each to hold; None means all."""

    sites: tuple[Site, ...]
    heads: tuple[int, ...] | None
    queries: tuple[int, ...] | None

    @classmethod
    def of(
        cls,
        all_sites: Sequence[Site],
        inputs: Inputs,
        sites: str | int | Sequence[str | int] | None,
        heads: int | Sequence[int] | None,
        queries: int | Sequence[int] | None,
    ) -> "MapSelection":
        """A selection, checked against the sites of a model and the length of an input."""
        chosen = choose_sites(all_sites, sites)
        selection = cls(chosen, _numbers("heads", heads), _numbers("queries", queries))
        for site in chosen:
            _check(selection.heads, site.heads, "head", site)
            rows = len(inputs.queries_and_keys(site.kind)[0].positions)
            _check(selection.queries, rows, "query", site)
        return selection

    def take(self, call: Call) -> tuple[Site, Tensor]:
        """The selected weights of a call, and its site with the number of selected heads."""
        weights = call.weights
        if self.heads is not None:
            weights = weights[:, list(self.heads)]
        if self.queries is not None:
            weights = weights[:, :, list(self.queries)]
        return replace(call.site, heads=weights.shape[1]), weights


def choose_sites(
    sites: Sequence[Site], asked: str | int | Sequence[str | int] | None
) -> tuple[Site, ...]:
    """The sites with these names, kinds or layer numbers, in the order of call; None means all."""
    if asked is None:
        return tuple(sites)
    each = _each(asked)
    wrong = [one for one in each if not (isinstance(one, str) or is_number(one))]
    if wrong:
        raise UsageError(f"sites are names, kinds or layer numbers, not {wrong[0]!r}")
    found = {site for one in each for site in _matching(sites, one)}
    return tuple(site for site in sites if site in found)


def _matching(sites: Sequence[Site], asked: str | int) -> list[Site]:
    if isinstance(asked, str):
        found = [site for site in sites if asked in (site.name, site.kind)]
        if not found:
            known = dict.fromkeys([*(s.kind for s in sites), *(s.name for s in sites)])
            raise UnknownNameError("site", asked, known)
        return found
    depth = {site.kind: site.layer + 1 for site in sites}
    found = [site for site in sites if site.layer in (asked, asked + depth[site.kind])]
    if not found:
        most = max(depth.values()) - 1
        raise UsageError(f"unknown layer {asked}: this model has layers 0 to {most}")
    return found


def _numbers(what: str, asked: int | Sequence[int] | None) -> tuple[int, ...] | None:
    if asked is None:
        return None
    each = _each(asked)
    wrong = [one for one in each if not is_number(one)]
    if wrong:
        raise UsageError(f"{what} are whole numbers, not {wrong[0]!r}")
    return tuple(int(one) for one in each)


def _each(asked: Any) -> list[Any]:
    """The items of a sequence; anything else is the only item."""
    many = isinstance(asked, Iterable) and not isinstance(asked, (str, bytes))
    return list(asked) if many else [asked]


def _check(asked: tuple[int, ...] | None, size: int, what: str, site: Site) -> None:
    wrong = [number for number in asked or () if not -size <= number < size]
    if wrong:
        raise UsageError(f"unknown {what} {wrong[0]} at {site.name}: it has 0 to {size - 1}")


def map_bytes(inputs: Inputs, sites: Collection[Site]) -> int:
    """How many bytes the maps of one row of a batch take at these sites."""
    heads: dict[str, int] = {}
    for site in sites:
        heads[site.kind] = heads.get(site.kind, 0) + site.heads
    return sum(_bytes(inputs, *each) for each in heads.items())


def _bytes(inputs: Inputs, kind: str, heads: int) -> int:
    queries, keys = inputs.queries_and_keys(kind)
    return heads * len(queries) * len(keys) * 4


def largest_map(inputs: Inputs, sites: Collection[Site]) -> int:
    """How many bytes the largest map of one row of a batch takes at one of these sites."""
    return max(_bytes(inputs, *each) for each in {(site.kind, site.heads) for site in sites})


def maps_of(
    inputs: Inputs,
    row: int,
    sites: Sequence[Site],
    arrays: Arrays,
    signed: bool = False,
    queries: Sequence[int] | None = None,
    shows: str = "attention",
) -> Maps:
    """Maps of one row of a batch, with the tokens of both axes.

    Each of the arrays is `[head, query, key]`; `queries` are the rows that they hold.
    """
    streams = [inputs.queries_and_keys(site.kind) for site in sites]
    rows = tuple(
        stream.positions if queries is None else tuple(stream.positions[i] for i in queries)
        for stream, _ in streams
    )
    columns = tuple(stream.positions for _, stream in streams)
    for site, shape, *axes in zip(sites, shapes_of(arrays), rows, columns, strict=True):
        expected = (len(axes[0]), len(axes[1]))
        if shape[1:] != expected:
            raise UnsupportedModelError(
                f"the attention at {site.name} is over {shape[1]} × {shape[2]} places, "
                f"not the {expected[0]} × {expected[1]} tokens of the input"
            )
    return Maps(tuple(sites), arrays, inputs.tokens[row], rows, columns, signed, shows)
