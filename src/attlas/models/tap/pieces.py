"""Attention in pieces: collected, laid out as one map, and handed back piece by piece."""

import inspect
from collections.abc import Mapping
from typing import Any

import torch
from torch import Tensor, nn

from attlas.errors import UnsupportedModelError
from attlas.models.tap.bands import BANDS, lay_out, pick_up

_HIDDEN = -5e3  # lower scores are masked: these families use -10,000 and less


class Pieces:
    """The softmaxes of one call to a block-sparse attention module.

    The module is run once to collect them. When it then runs for the tap, each softmax is left as
    it is, or takes its weights from the map that the tap returned.
    """

    def __init__(self, module: nn.Module, args: tuple[Any, ...], given: Mapping[str, Any]) -> None:
        bound = inspect.signature(module.forward).bind(*args, **given)
        bound.apply_defaults()
        self._name = type(module).__name__
        self._bands = BANDS[self._name](module, bound.arguments)
        self._found: list[Tensor] = []
        self._visible: list[Tensor] = []
        self._used: Tensor | None = None
        self._number = 0
        self.collecting = True

    def meet(self, piece: Tensor, scores: Tensor) -> Tensor:
        """One softmax of the module: collect it, or return what is to be used in its place."""
        if self.collecting:
            self._found.append(piece)
            self._visible.append(scores > _HIDDEN)
            return piece
        number, self._number = self._number, (self._number + 1) % len(self._found)
        if self._used is None:
            return piece
        return pick_up(self._used, piece, number, self._bands).to(piece.dtype)

    def finish(self) -> tuple[Tensor, Tensor]:
        """The map of all softmaxes, and which keys each query may see."""
        self.collecting = False
        if len(self._found) != len(self._bands.layouts):
            raise UnsupportedModelError(
                f"{self._name} cannot be opened: it took {len(self._found)} softmaxes, expected "
                f"{len(self._bands.layouts)}"
            )
        weights = lay_out(self._found, self._bands)
        seen = lay_out([each.to(weights.dtype) for each in self._visible], self._bands)
        return weights, seen > 0

    def use(self, weights: Tensor) -> None:
        """Take the weights of this map from now on; none may lie outside the windows."""
        inside = lay_out([torch.ones_like(each) for each in self._found], self._bands) > 0
        if weights.detach().masked_select(~inside).any():
            raise UnsupportedModelError(
                f"{self._name} attends within windows: an edit cannot put weight outside them"
            )
        self._used = weights
