"""Edits: ways to rewrite the attention weights at chosen sites.

A change gets the weights `[batch, head, query, key]` of a site and the keys that each query may
see, and returns weights of the same shape.
"""

from collections.abc import Callable, Iterable
from dataclasses import dataclass
from dataclasses import replace as changed
from numbers import Integral
from typing import Any

import torch

from attlas.errors import UnknownNameError, UsageError
from attlas.models.facts.sites import KINDS
from attlas.results import Site
from attlas.shapes import Attention, Visible

Change = Callable[[Attention, Visible], Attention]


@dataclass(frozen=True)
class Edit:
    """A change of attention weights, applied everywhere unless `at` narrows it."""

    name: str
    change: Change
    kind: str | None = None
    layer: int | None = None
    heads: tuple[int, ...] | None = None
    queries: tuple[int, ...] | None = None
    keys: tuple[int, ...] | None = None

    def at(
        self,
        *,
        kind: str | None = None,
        layer: int | None = None,
        heads: int | Iterable[int] | None = None,
        queries: int | Iterable[int] | None = None,
        keys: int | Iterable[int] | None = None,
    ) -> "Edit":
        """The same edit, applied only at these sites, heads, query rows and keys.

        With `keys` it sees these keys alone: `uniform` spreads their weight over them, and
        `permute` shuffles them among themselves.
        """
        if kind is not None and kind not in KINDS:
            raise UnknownNameError("kind of site", kind, KINDS)
        (one,) = whole_numbers("layer", layer) or (None,)
        return changed(
            self,
            kind=kind,
            layer=one,
            heads=whole_numbers("heads", heads),
            queries=whole_numbers("queries", queries),
            keys=whole_numbers("keys", keys),
        )

    def touches(self, site: Site) -> bool:
        """Whether this edit acts at a site."""
        return self.kind in (None, site.kind) and self.layer in (None, site.layer)

    def rewrite(self, site: Site, weights: Attention, visible: Visible) -> Attention:
        """Apply this edit to its heads, query rows and keys; the others keep their weights."""
        keys = _mark(self.keys, weights.shape[3], "key", site, weights.device)
        seen = (weights, visible) if self.keys is None else (weights * keys, visible & keys)
        new = self.change(*seen)
        if new.shape != weights.shape:
            raise UsageError(
                f"the edit {self.name!r} gave weights of shape {tuple(new.shape)} at {site.name}, "
                f"expected {tuple(weights.shape)}"
            )
        return torch.where(self._where(site, weights) & keys, new.to(weights), weights)

    def _where(self, site: Site, weights: Attention) -> torch.Tensor:
        heads = _mark(self.heads, weights.shape[1], "head", site, weights.device)
        queries = _mark(self.queries, weights.shape[2], "query", site, weights.device)
        return heads[:, None, None] & queries[:, None]

    def check(self, sites: Iterable[Site]) -> "Edit":
        """Resolve a negative layer; raises if the edit matches none of these sites."""
        reach = [site for site in sites if self.kind in (None, site.kind)]
        if not reach:
            raise UnknownNameError("kind of site", str(self.kind), {site.kind for site in sites})
        if self.layer is None:
            return self
        layers = max(site.layer for site in reach) + 1
        if not -layers <= self.layer < layers:
            raise UsageError(f"unknown layer {self.layer}: this model has layers 0 to {layers - 1}")
        return changed(self, layer=self.layer % layers)


def scale(factor: int | float | torch.Tensor) -> Edit:
    """Multiply the weights by a factor; 0 switches a head off."""
    return Edit("scale", lambda weights, _: weights * factor)


def zero(keys: int | Iterable[int]) -> Edit:
    """Set the weight of these keys to zero, and give it to the other keys in proportion.

    A row with all of its weight on these keys becomes zero.
    """
    columns = list(whole_numbers("keys", keys) or ())

    def change(weights: Attention, visible: Visible) -> Attention:
        rest = weights.clone()
        _check_numbers("key", columns, weights.shape[-1])
        rest[..., columns] = 0
        left = rest.sum(dim=-1, keepdim=True)
        total = weights.sum(dim=-1, keepdim=True)
        return torch.where(left > 0, rest * total / left.clamp_min(1e-38), rest)

    return Edit("zero", change)


def uniform() -> Edit:
    """Spread each row's weight evenly over the keys it may see."""

    def change(weights: Attention, visible: Visible) -> Attention:
        seen = visible.sum(dim=-1, keepdim=True).clamp_min(1)  # a row of padding may see nothing
        even = visible.to(weights) / seen.to(weights)
        return even * weights.sum(dim=-1, keepdim=True)

    return Edit("uniform", change)


def permute(seed: int = 0) -> Edit:
    """Shuffle each row's weights among the keys it may see, independently for each row and head."""

    def change(weights: Attention, visible: Visible) -> Attention:
        generator = torch.Generator().manual_seed(seed)
        noise = torch.rand(weights.shape, generator=generator).to(weights.device)
        seen = visible.expand_as(weights)
        order = noise.masked_fill(~seen, 2.0).argsort(dim=-1)  # seen keys first, shuffled
        places = (~seen).to(torch.uint8).argsort(dim=-1, stable=True)  # seen keys first, in order
        return torch.zeros_like(weights).scatter(-1, places, weights.gather(-1, order))

    return Edit("permute", change)


def replace(weights: torch.Tensor) -> Edit:
    """Replace the weights by these, which must broadcast to `[batch, head, query, key]`."""

    def change(old: Attention, visible: Visible) -> Attention:
        try:
            return weights.to(old).expand_as(old)
        except RuntimeError as problem:
            raise UsageError(
                f"weights of shape {tuple(weights.shape)} cannot replace {tuple(old.shape)}"
            ) from problem

    return Edit("replace", change)


def put(
    weights: Any,
    *,
    heads: int | Iterable[int] | None = None,
    queries: int | Iterable[int] | None = None,
    keys: int | Iterable[int] | None = None,
) -> Edit:
    """Put weights in at these heads, rows and keys, by default at all, in the order given.

    The weights broadcast to `[head, query, key]` of those chosen; the others stay.
    """
    try:
        block = torch.as_tensor(weights, dtype=torch.float64)
    except (ValueError, TypeError) as problem:
        raise UsageError(f"weights are numbers, in rows of equal lengths: {problem}") from problem
    chosen = [whole_numbers(*each) for each in (("heads", heads), ("queries", queries))]
    chosen.append(whole_numbers("keys", keys))

    def change(old: Attention, visible: Visible) -> Attention:
        shape = tuple(
            size if each is None else len(each)
            for each, size in zip(chosen, old.shape[1:], strict=True)
        )
        try:
            new = block.to(old).expand(shape)
        except RuntimeError as problem:
            raise UsageError(
                f"weights of shape {tuple(block.shape)} cannot be put at {shape}"
            ) from problem
        rows, columns, third = _places(chosen, old)
        found = old.clone()
        found[:, rows[:, None, None], columns[:, None], third] = new
        return found

    return Edit("put", change)


def _places(chosen: Iterable[tuple[int, ...] | None], old: Attention) -> list[torch.Tensor]:
    """The numbers of the chosen heads, rows and keys; one that does not exist is an error."""
    found = []
    for name, each, size in zip(("head", "query", "key"), chosen, old.shape[1:], strict=True):
        numbers = range(size) if each is None else each
        _check_numbers(name, numbers, size)
        found.append(torch.tensor(numbers, device=old.device))
    return found


def _check_numbers(name: str, numbers: Iterable[int], size: int) -> None:
    for number in numbers:
        if not -size <= number < size:
            raise UsageError(f"unknown {name} {number}: there are 0 to {size - 1}")


def apply(function: Callable[[torch.Tensor], torch.Tensor]) -> Edit:
    """Rewrite the weights by your own function of `[batch, head, query, key]`."""
    name = getattr(function, "__name__", "apply")
    return Edit(name, lambda weights, _: function(weights))


def whole_numbers(name: str, given: Any) -> tuple[int, ...] | None:
    """One number or several as a tuple; anything else is refused by the name of the argument."""
    if given is None:
        return None
    several = isinstance(given, Iterable) and name != "layer"
    listed = tuple(given) if several else (given,)
    if not all(map(_is_whole, listed)):
        what = "is a whole number" if name == "layer" else "are whole numbers"
        raise UsageError(f"{name} {what}, not {given!r}")
    return listed


def _is_whole(number: Any) -> bool:
    return isinstance(number, Integral) and not isinstance(number, bool)


def _mark(
    chosen: tuple[int, ...] | None, size: int, kind: str, site: Site, device: torch.device
) -> torch.Tensor:
    if chosen is None:
        return torch.ones(size, dtype=torch.bool, device=device)
    wrong = [number for number in chosen if not -size <= number < size]
    if wrong:
        raise UsageError(f"unknown {kind} {wrong[0]} at {site.name}: it has 0 to {size - 1}")
    mark = torch.zeros(size, dtype=torch.bool, device=device)
    mark[list(chosen)] = True
    return mark
