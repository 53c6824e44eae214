"""Laying out the softmaxes of windows or blocks as one map of all queries and keys, and back."""

from collections.abc import Sequence
from dataclasses import dataclass

import torch
from torch import Tensor, nn

NOWHERE = -1  # the query or key of a weight that is filled in, or belongs to no token


@dataclass(frozen=True, eq=False)
class Band:
    """The query of each row of one softmax, and the key of each weight.

    `axes` names the axes of the softmax: batch b, head h, block n, query q, key k; x is batch and
    head in one, y batch and block. The rows are those of all blocks, one block after the other.
    """

    axes: str
    rows: Tensor  # [batch or 1, row]
    keys: Tensor  # [batch or 1, head or 1, row, column]


@dataclass(frozen=True, eq=False)
class Bands:
    """The bands of one call, one for each softmax in their order, and the size of its map."""

    each: Sequence[Band]
    queries: int
    keys: int
    heads: int

    @property
    def size(self) -> tuple[int, int]:
        """How many queries and keys the map has."""
        return self.queries, self.keys


def lay_out(pieces: Sequence[Tensor], bands: Bands) -> Tensor:
    """The map `[batch, head, query, key]` of these softmaxes; a key that occurs twice is summed."""
    parts = [
        _scatter(_as_rows(piece, band, bands.heads), band, bands.size)
        for piece, band in zip(pieces, bands.each, strict=True)
    ]
    return torch.stack(parts).sum(dim=0) if len(parts) > 1 else parts[0]


def pick_up(weights: Tensor, piece: Tensor, number: int, bands: Bands) -> Tensor:
    """The softmax of this number with the weights of a map; fillers stay as they are.

    The weight of a key that occurs twice is shared as the softmax shared it.
    """
    band = bands.each[number]
    own = _as_rows(piece, band, bands.heads)
    total = _gather(_scatter(own.detach(), band, bands.size), own, band)
    share = torch.where(total > 0, own.detach() / total.where(total > 0, 1.0), 1.0)
    placed = _places(band, bands.size) < bands.queries * bands.keys
    found = torch.where(placed, _gather(weights, own, band) * share, own)
    return _as_before(found, piece, band.axes)


def _scatter(own: Tensor, band: Band, size: tuple[int, int]) -> Tensor:
    """The rows of a softmax in a map; what belongs nowhere is dropped."""
    places = _places(band, size).expand_as(own).flatten(2)
    blank = own.new_zeros(*own.shape[:2], size[0] * size[1] + 1)
    laid = blank.scatter_add(2, places, own.flatten(2))[..., :-1]
    return laid.reshape(*own.shape[:2], *size)


def _gather(weights: Tensor, own: Tensor, band: Band) -> Tensor:
    """The weight of a map at the place of each weight of a softmax; zero at no place."""
    queries, keys = weights.shape[-2:]
    places = _places(band, (queries, keys)).expand_as(own).flatten(2)
    flat = nn.functional.pad(weights.flatten(2), (0, 1))
    return flat.gather(2, places).reshape(own.shape)


def _places(band: Band, size: tuple[int, int]) -> Tensor:
    """The place of each weight in a flat map; what belongs nowhere comes after the last."""
    rows, keys = band.rows[:, None, :, None], band.keys
    inside = (rows >= 0) & (rows < size[0]) & (keys >= 0) & (keys < size[1])
    return torch.where(inside, rows * size[1] + keys, size[0] * size[1])


def _as_rows(piece: Tensor, band: Band, heads: int) -> Tensor:
    """A softmax as `[batch, head, row, column]`."""
    axes = band.axes
    if axes == "xqk":
        apart: Tensor = piece.unflatten(0, (-1, heads))
        return apart
    if axes == "yhqk":
        blocks = band.rows.shape[-1] // piece.shape[-2]
        apart = piece.unflatten(0, (-1, blocks))
        return apart.transpose(1, 2).flatten(2, 3)
    order = [axes.index(axis) for axis in "bhnqk" if axis in axes]
    rows = piece.permute(order)
    return rows.flatten(2, 3) if "n" in axes else rows


def _as_before(rows: Tensor, like: Tensor, axes: str) -> Tensor:
    """Undo `_as_rows`."""
    if axes == "xqk":
        return rows.flatten(0, 1)
    if axes == "yhqk":
        apart: Tensor = rows.unflatten(2, (-1, like.shape[-2]))
        return apart.transpose(1, 2).flatten(0, 1)
    if "n" in axes:
        rows = rows.unflatten(2, (like.shape[axes.index("n")], -1))
    inner = [axis for axis in "bhnqk" if axis in axes]
    return rows.permute([inner.index(axis) for axis in axes])


def square(bands: Sequence[Band], tokens: int, heads: int) -> Bands:
    """The bands of a map in which the same tokens are queries and keys."""
    return Bands(bands, tokens, tokens, heads)
