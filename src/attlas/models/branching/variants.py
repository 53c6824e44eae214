"""Variants: many ways to rewrite the attention of one site, computed together."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass, field
from functools import lru_cache

import torch
from torch import Tensor

from attlas.errors import UsageError
from attlas.models.tap.edits import Edit
from attlas.results import Site
from attlas.shapes import Attention, Visible

Numbers = Sequence[int]
Change = Callable[[Site, Attention, Visible, Numbers], Tensor]


@dataclass(frozen=True)
class Variants:
    """`count` ways to rewrite the attention of a site.

    `change` gets the unchanged weights `[batch, head, query, key]`, the keys that each query may
    see, and the numbers of the variants to compute. It returns `[variant, batch, head, query,
    key]`. A variant depends only on its number, not on the others in the call. Variants with equal
    name, count and non-empty `fixed` are the same and can be recorded on a GPU.
    """

    name: str
    count: int
    change: Change = field(compare=False)
    fixed: tuple[float, ...] = ()


def each(edits: Sequence[Edit]) -> Variants:
    """One variant for each edit; of its place, only the heads and queries count."""
    if not edits:
        raise UsageError("variants need at least one edit")

    def change(site: Site, weights: Attention, visible: Visible, numbers: Numbers) -> Tensor:
        return torch.stack([edits[number].rewrite(site, weights, visible) for number in numbers])

    return Variants("each", len(edits), change)


def scaled(factors: Sequence[float]) -> Variants:
    """The weights multiplied by each of the factors."""
    held: list[Tensor] = []  # recorded passes read these tensors

    def change(_: Site, weights: Attention, visible: Visible, numbers: Numbers) -> Tensor:
        chosen = tuple(factors[number] for number in numbers)
        shares = _on_device(chosen, weights.device, weights.dtype)
        held.append(shares)
        return shares[:, None, None, None, None] * weights

    return Variants("scaled", len(factors), change, tuple(factors))


@lru_cache(maxsize=64)
def _on_device(factors: tuple[float, ...], device: torch.device, dtype: torch.dtype) -> Tensor:
    """The factors on the device; cached, because a recorded pass cannot copy them there."""
    return torch.tensor(factors, device=device, dtype=dtype)


def permuted(count: int, seed: int = 0) -> Variants:
    """Each row's weights shuffled among the keys it may see, differently in every variant."""

    def change(_: Site, weights: Attention, visible: Visible, numbers: Numbers) -> Tensor:
        noise = torch.stack([_noise(weights, seed + number) for number in numbers])
        unseen = ~visible.expand_as(weights)
        order = noise.masked_fill_(unseen, 2.0).argsort(dim=-1)  # seen keys first, shuffled
        shuffled = weights.expand_as(noise).gather(-1, order)
        if not unseen.any():
            return shuffled
        places = unseen.to(torch.uint8).argsort(dim=-1, stable=True)  # seen keys first, in order
        return torch.zeros_like(shuffled).scatter_(-1, places.expand_as(order), shuffled)

    return Variants("permuted", count, change)


def _noise(weights: Attention, seed: int) -> Tensor:
    generator = torch.Generator(weights.device).manual_seed(seed)
    return torch.rand(weights.shape, generator=generator, device=weights.device)
