"""Records of what a tap sees: each call to an attention, and the calls of each forward pass."""

from collections.abc import Sequence
from dataclasses import dataclass, field

import torch
from torch import Tensor

from attlas.results import Site


@dataclass(frozen=True)
class SiteKeys:
    """A site, and which keys of a call are its own: all, unless one softmax is over two streams."""

    site: Site
    keys: slice

    def of(self, given: Tensor) -> Tensor:
        """The weights, or the mask, of this site."""
        return given if self.keys == slice(None) else given[..., self.keys]

    def among(self, given: Tensor) -> Tensor:
        """The keys, or the values, of this site."""
        return given if self.keys == slice(None) else given[..., self.keys, :]


@dataclass(frozen=True, eq=False)
class Call:
    """One call to an attention: its weights after the edits, the mask and the values."""

    site: Site
    path: str  # of the attention module
    weights: Tensor
    mask: Tensor | None
    values: Tensor | None  # only for `keep`; None where they were not found

    @property
    def visible(self) -> Tensor:
        """Which keys each query may see, `[batch, 1 or head, query, key]`."""
        return find_visible(self.mask, self.weights)


@dataclass(eq=False)
class Seen:
    """What a tap saw: a list of calls for each forward pass. The properties show the last pass."""

    passes: list[list[Call]] = field(default_factory=list)

    @property
    def calls(self) -> list[Call]:
        """The calls of the last pass."""
        return self.passes[-1] if self.passes else []

    @property
    def sites(self) -> list[Site]:
        """The sites of the last pass, in the order of the calls."""
        return [call.site for call in self.calls]

    @property
    def weights(self) -> list[Tensor]:
        """The attention at each site of the last pass, `[batch, head, query, key]`."""
        return [call.weights for call in self.calls]


def join(parts: Sequence[Tensor]) -> Tensor:
    """The weights of a call, from those of each of its sites."""
    return parts[0] if len(parts) == 1 else torch.cat(list(parts), dim=-1)


def find_visible(mask: Tensor | None, weights: Tensor) -> Tensor:
    """Which keys each query may see, `[batch, 1 or head, query, key]`."""
    if mask is None:
        return weights.new_ones((1, 1, 1, 1), dtype=torch.bool).expand(
            weights.shape[0], 1, *weights.shape[2:]
        )
    seen = mask if mask.dtype == torch.bool else mask > torch.finfo(mask.dtype).min / 2
    seen = seen[..., : weights.shape[-1]]
    return seen.expand(weights.shape[0], seen.shape[1], *weights.shape[2:])
