"""Masks of attention that are made for a few rows at a time: a whole one is large for a long text.

A model is handed a stand-in without content, of the shape of the whole mask, which goes through the
modelling file to the attention as the mask would. Whatever computes with it instead is an error.
"""

from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from functools import cache, cached_property, partial
from typing import Any

import torch
from torch import Tensor

from attlas.errors import UnsupportedModelError
from attlas.models.facts import transformers_internals as internals
from attlas.models.tap.opening import attend

SLICED = internals.StandInForEager("attlas_sliced")
SLICED_BOOLEAN = internals.StandInForEager("attlas_boolean_sliced")
_NAME = "attlas_mask"  # the attribute of a stand-in that holds the mask
_everywhere: ContextVar[bool] = ContextVar("whether no mask is left out", default=False)


class _Needed(Exception):
    """A mask cannot be left out."""


@dataclass(frozen=True, eq=False)
class SlicedMask:
    """A mask by the function of transformers that makes it, with what it is given for all rows."""

    make: Callable[..., Tensor]
    given: Mapping[str, Any]

    def rows(self, rows: Tensor) -> Tensor:
        """The mask of these query rows, `[batch, 1, row, key]`."""
        sees, first = self.given["mask_function"], self.given["q_offset"]

        def at(batch: Tensor, head: Tensor, row: Tensor, key: Tensor) -> Any:
            return sees(batch, head, rows[row] + first, key)

        own = {"mask_function": at, "q_length": len(rows), "q_offset": 0}
        skips = {"allow_is_causal_skip": False, "allow_is_bidirectional_skip": False}
        return self.make(**{**self.given, **own, **skips})

    @cached_property
    def whole(self) -> Tensor:
        """The mask of all rows."""
        return self.rows(torch.arange(self.given["q_length"], device=self.given["device"]))

    def stand_in(self) -> Tensor:
        """What a model is handed for it."""
        first = self.rows(torch.zeros(1, dtype=torch.long, device=self.given["device"]))
        count = self.given["q_length"]
        found = first.to("meta").expand(-1, -1, count, -1)
        setattr(found, _NAME, self)
        return found


def sliced(mask: Tensor | None) -> Tensor | SlicedMask | None:
    """The mask that an attention was handed; raises for what a model has made of a stand-in."""
    if mask is None or not mask.is_meta:
        return mask
    found: SlicedMask | None = getattr(mask, _NAME, None)
    if found is None:
        raise UnsupportedModelError("the model computes with its mask, which is made by rows")
    return found


def name_of_sliced(implementation: str) -> str:
    """The attention implementation whose masks are sliced, beside the one that makes them whole."""
    _register()
    is_boolean = str(implementation) == str(internals.WITH_BOOLEAN_MASKS)
    return SLICED_BOOLEAN if is_boolean else SLICED


@contextmanager
def everywhere() -> Iterator[None]:
    """Within the block, masks are made where transformers would leave them out too."""
    token = _everywhere.set(True)
    try:
        yield
    finally:
        _everywhere.reset(token)


@cache
def _register() -> None:
    internals.register(attend, (SLICED, SLICED_BOOLEAN), lambda make: partial(_mask, make))


def _mask(make: Callable[..., Tensor], **given: Any) -> Tensor | None:
    """A stand-in for a mask; None where it may be left out."""
    if given.get("use_vmap"):  # it is no function of places alone
        return make(**given)
    if not _everywhere.get():
        try:
            return make(**{**given, "mask_function": _is_needed})
        except _Needed:
            pass
    return SlicedMask(make, given).stand_in()


def _is_needed(*_: Tensor) -> Tensor:
    raise _Needed
