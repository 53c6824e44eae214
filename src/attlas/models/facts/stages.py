"""Stages: which place of an attention holds each patch, in models whose tokens become fewer."""

from dataclasses import dataclass
from functools import reduce
from typing import Any

import torch
from torch import Tensor, nn

from attlas.errors import UnsupportedModelError
from attlas.mathematics.squares import NOBODY, squares_of
from attlas.shapes import Holders


@dataclass(frozen=True, eq=False)
class Stages:
    """A picture as a model reads it: the grid of its patches, and the tokens before them."""

    model: nn.Module
    grid: tuple[int, int]
    extra: int  # tokens that are no patches; they may enter at a later stage

    def holders(self, count: int) -> Holders:
        """The place that holds each token, where an attention is over `count` places."""
        for others in dict.fromkeys((0, self.extra)):
            patches = self._patch_holders(count - others)
            if patches is not None:
                before = torch.arange(self.extra) if others else torch.full((self.extra,), NOBODY)
                return torch.cat([before, patches + others])
        raise UnsupportedModelError(
            f"{type(self.model).__name__} attends to {count} places, which are no squares of its "
            f"{self.grid[0]} × {self.grid[1]} patches, so its maps have no place on the picture"
        )

    def _patch_holders(self, count: int) -> Tensor | None:
        order = _order(self.model, self.grid)
        if order is None:
            return squares_of(self.grid, count)
        return order % count if count > 0 and len(order) % count == 0 else None


def has_stages(model: nn.Module) -> bool:
    """Whether a model joins its tokens on the way: its configuration lists the depth of stages."""
    config = getattr(model, "config", None)
    depths = getattr(config, "depths", getattr(config, "depth", None))
    return isinstance(depths, (list, tuple)) and len(depths) > 1


def _order(model: nn.Module, grid: tuple[int, int]) -> Tensor | None:
    """Where each patch, row by row, is in the sequence; None if that is the order of the patches.

    Hiera puts the patches that it will join as far apart as there are places after joining.
    """
    config: Any = getattr(model, "config", None)
    if getattr(config, "model_type", None) != "hiera":
        return None
    strides = [tuple(config.query_stride)] * (len(config.depths) - 1)
    patches = torch.arange(grid[0] * grid[1]).view(1, *grid)
    return reduce(_unroll, strides, patches).flatten().argsort()


def _unroll(blocks: Tensor, stride: tuple[int, int]) -> Tensor:
    """Divide `[block, row, column]` into blocks of every so many rows and columns."""
    apart = [
        blocks[:, down :: stride[0], right :: stride[1]]
        for down in range(stride[0])
        for right in range(stride[1])
    ]
    return torch.stack(apart, dim=1).flatten(0, 1)
