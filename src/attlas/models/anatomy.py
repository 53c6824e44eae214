"""Anatomy: what of a model the tap must know, found once and kept as long as it is true."""

from collections.abc import Iterator
from dataclasses import dataclass
from typing import Any
from weakref import WeakKeyDictionary

from torch import nn

from attlas.models import transformers_internals as internals
from attlas.models.sites import Owner, find_owners

_known: WeakKeyDictionary[nn.Module, "Anatomy"] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class Anatomy:
    """The modules that own an attention, the whole models and the configurations in a model."""

    owners: tuple[Owner, ...]
    submodels: tuple[nn.Module, ...]
    configurations: tuple[Any, ...]
    parts: tuple[tuple[int, type], ...]  # by which a model that was rebuilt is told from this one

    @property
    def has_second_road(self) -> bool:
        """Whether some attention is met at its softmax."""
        return any(owner.road == "softmax" for owner in self.owners)

    @property
    def implementation(self) -> str:
        """The attention implementation to set: ours, or eager where no module would ask for it."""
        on_interface = any(owner.road == "interface" for owner in self.owners)
        return internals.IMPLEMENTATION if on_interface else "eager"


def anatomy(model: nn.Module) -> Anatomy:
    """The anatomy of a model; walking it takes longer than a small forward pass on a GPU."""
    parts = tuple((id(module), type(module)) for module in _walk(model))
    known = _known.get(model)
    if known is None or known.parts != parts:
        known = Anatomy(
            tuple(find_owners(model)),
            tuple(internals.submodels(model)),
            tuple(internals.configurations(model)),
            parts,
        )
        _known[model] = known
    return known


def _walk(model: nn.Module) -> Iterator[nn.Module]:
    """Every module once for each place it has: quicker than `modules()`, which also compares."""
    waiting = [model]
    while waiting:
        module = waiting.pop()
        yield module
        waiting.extend(each for each in module._modules.values() if each is not None)
