"""Anatomy: what of a model the tap must know, found once and kept as long as it is true."""

from dataclasses import dataclass
from typing import Any
from weakref import ReferenceType, WeakKeyDictionary, ref

from torch import nn

from attlas.models.facts import transformers_internals as internals
from attlas.models.facts.sites import Owner, find_owners


@dataclass(frozen=True, eq=False)
class Anatomy:
    """The modules that own an attention, the whole models and the configurations in a model."""

    owners: tuple[Owner, ...]
    submodels: tuple[nn.Module, ...]
    configurations: tuple[Any, ...]

    @property
    def has_second_road(self) -> bool:
        """Whether some attention is met at its softmax."""
        return any(owner.road == "softmax" for owner in self.owners)

    @property
    def implementation(self) -> str:
        """The attention implementation to set: ours, or eager where no module would ask for it."""
        on_interface = any(owner.road == "interface" for owner in self.owners)
        return internals.IMPLEMENTATION if on_interface else "eager"


@dataclass(frozen=True)
class _Kept:
    """An anatomy that keeps no module alive, and the parts of the model it was found in."""

    owners: tuple[tuple[ReferenceType[nn.Module], str, str, str], ...]
    submodels: tuple[ReferenceType[nn.Module], ...]
    configurations: tuple[Any, ...]
    parts: list[Any]


_known: WeakKeyDictionary[nn.Module, _Kept] = WeakKeyDictionary()


def anatomy(model: nn.Module) -> Anatomy:
    """The anatomy of a model; to find it anew takes longer than a small forward pass on a GPU."""
    parts = _parts(model)
    kept = _known.get(model)
    found = _recall(kept) if kept is not None and kept.parts == parts else None
    if found is None:
        found = Anatomy(
            tuple(find_owners(model)),
            tuple(internals.submodels(model)),
            tuple(internals.configurations(model)),
        )
        _known[model] = _Kept(
            tuple((ref(each.module), each.path, each.kind, each.road) for each in found.owners),
            tuple(ref(each) for each in found.submodels),
            found.configurations,
            parts,
        )
    return found


def _recall(kept: _Kept) -> Anatomy | None:
    """The anatomy that was kept, if all of it is still there."""
    modules = [(module(), path, kind, road) for module, path, kind, road in kept.owners]
    models = [model() for model in kept.submodels]
    if None in models or any(each[0] is None for each in modules):
        return None
    owners = tuple(Owner(m, path, kind, road) for m, path, kind, road in modules if m is not None)
    return Anatomy(owners, tuple(m for m in models if m is not None), kept.configurations)


def _parts(model: nn.Module) -> list[Any]:
    """Every module and its kind, once for each place it has: far quicker than `modules()`."""
    parts: list[Any] = []
    waiting: list[Any] = [model]
    while waiting:
        module = waiting.pop()
        if module is not None:
            parts.append(id(module))
            parts.append(type(module))
            waiting.extend(module._modules.values())
    return parts
