"""Rewritings of attention: pure functions of weights, of the entries that may change, and of noise.

Weights are `[variant, batch, head, query, key]`, with a single variant if all start from the same;
entries are `[batch, 1 or head, query, key]`. In each row, the other weights stay as they are, and
the weights that may change keep their sum.
"""

from collections.abc import Callable, Sequence
from dataclasses import dataclass

import torch
from torch import Tensor

from attlas.errors import UnsupportedModelError
from attlas.shapes import EntryMarks, ManyAttentions, QueryMarks


@dataclass(frozen=True, eq=False)
class Draws:
    """Random numbers for variants of texts, seeded by the text and the number of the variant."""

    seeds: Sequence[int]
    numbers: Sequence[int]
    device: torch.device

    def uniform(self, *shape: int) -> Tensor:
        """Numbers between 0 and 1, `[variant, batch, …]`."""
        return torch.stack([self._of_text(seed, shape) for seed in self.seeds], dim=1)

    def for_rows(self, heads: int, rows: QueryMarks, keys: int) -> Tensor:
        """Numbers for the marked rows of each text, `[variant, batch, head, query, key]`.

        The numbers of a text do not depend on the rows of other texts.
        """
        shape = (len(self.numbers), heads, rows.shape[1], keys)
        texts = []
        for seed, own in zip(self.seeds, rows, strict=True):
            places = own.nonzero()[:, 0]
            drawn = self._of_text(seed, (heads, len(places), keys))
            texts.append(drawn.new_zeros(shape).index_copy_(2, places, drawn))
        return torch.stack(texts, dim=1)

    def _of_text(self, seed: int, shape: Sequence[int]) -> Tensor:
        generator = torch.Generator(self.device)
        drawn = []
        for number in self.numbers:
            generator.manual_seed(seed + number)
            drawn.append(torch.rand(shape, generator=generator, device=self.device))
        return torch.stack(drawn)


Rewriting = Callable[[ManyAttentions, EntryMarks, Draws], ManyAttentions]


def shuffle_columns(weights: ManyAttentions, entries: EntryMarks, draws: Draws) -> ManyAttentions:
    """Shuffle the weights of each row among its keys, every row and head by itself."""
    heads, keys = weights.shape[2], weights.shape[-1]
    return _in_rows(weights, entries, lambda rows: draws.for_rows(heads, rows, keys))


def shuffle_columns_of_all_heads(
    weights: ManyAttentions, entries: EntryMarks, draws: Draws
) -> ManyAttentions:
    """Shuffle the weights of each row among its keys, in the same order for all heads."""
    return _in_rows(weights, entries, lambda rows: draws.for_rows(1, rows, weights.shape[-1]))


def shuffle_keys(weights: ManyAttentions, entries: EntryMarks, draws: Draws) -> ManyAttentions:
    """Shuffle the keys in one order for all rows and heads; each row skips keys it does not see."""

    def make(rows: QueryMarks) -> Tensor:
        noise = draws.uniform(1, 1, weights.shape[-1])
        return noise.expand(*noise.shape[:3], rows.shape[1], -1)

    return _in_rows(weights, entries, make)


def shuffle_rows(weights: ManyAttentions, entries: EntryMarks, draws: Draws) -> ManyAttentions:
    """Give each row the shares of another row, every head by itself."""
    return _exchange_rows(weights, entries, draws, weights.shape[2])


def shuffle_rows_of_all_heads(
    weights: ManyAttentions, entries: EntryMarks, draws: Draws
) -> ManyAttentions:
    """Give each row the shares of another row, the same in all heads."""
    return _exchange_rows(weights, entries, draws, 1)


def spread_evenly(weights: ManyAttentions, entries: EntryMarks, _: Draws) -> ManyAttentions:
    """Spread the weight of each row evenly over the keys that may change."""
    counts = entries.sum(dim=-1, keepdim=True)
    even = (weights * entries).sum(dim=-1, keepdim=True) / counts.clamp_min(1)
    return torch.where(entries, even.to(weights), weights)


def _in_rows(
    weights: ManyAttentions, entries: EntryMarks, make_noise: Callable[[QueryMarks], Tensor]
) -> ManyAttentions:
    """Shuffle only the rows in which something may change: usually one of many."""
    rows = entries.any(dim=-1).any(dim=1)
    places = rows.any(dim=0).nonzero()[:, 0]
    noise = make_noise(rows[:, places])
    new = shuffled(weights[..., places, :], entries[..., places, :], noise)
    whole = weights.expand(len(noise), *weights.shape[1:])
    return whole.index_copy(-2, places, new)


def shuffled(weights: ManyAttentions, entries: EntryMarks, noise: Tensor) -> ManyAttentions:
    """Put the entries of each row in the order of the noise; the other weights stay."""
    closed = ~entries
    order = noise.masked_fill(closed, 2.0).argsort(dim=-1, stable=True)  # entries first
    places = closed.to(torch.uint8).argsort(
        dim=-1, stable=True
    )  # entries first, in their own order
    shape = torch.broadcast_shapes(weights.shape, order.shape)
    moved = weights.expand(shape).gather(-1, order.expand(shape))
    return torch.empty_like(moved).scatter_(-1, places.expand(shape), moved)


def _exchange_rows(
    weights: ManyAttentions, entries: EntryMarks, draws: Draws, heads: int
) -> ManyAttentions:
    columns = entries.any(dim=-2, keepdim=True)
    if (entries.any(dim=-1, keepdim=True) & (columns != entries)).any():
        raise UnsupportedModelError("rows can only be exchanged if all of them see the same keys")
    order = draws.uniform(heads, weights.shape[-2]).argsort(dim=-1)
    shape = (*order.shape[:2], *weights.shape[2:])
    index = order[..., None].expand(*order.shape, weights.shape[-1]).expand(shape)
    other = weights.expand(shape).gather(-2, index) * columns
    mass = (weights * entries).sum(dim=-1, keepdim=True)
    total = other.sum(dim=-1, keepdim=True)
    return torch.where(entries & (total > 0), other / total.where(total > 0, 1) * mass, weights)
