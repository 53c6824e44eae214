"""Anatomy: what the tap must know about a model, found once and cached while it stays true."""

from dataclasses import dataclass
from typing import Any
from weakref import ReferenceType, WeakKeyDictionary, ref

from torch import nn

from attlas.models.facts import transformers_internals as internals
from attlas.models.facts.evaluation_mode import known_in_use, stamp_of
from attlas.models.facts.sites import Owner, find_owners, network_of


@dataclass(frozen=True, eq=False)
class Anatomy:
    """The attention modules, the submodels and the configurations inside a model."""

    owners: tuple[Owner, ...]
    submodels: tuple[nn.Module, ...]
    configurations: tuple[Any, ...]
    network: str | None  # of torch, that reads the tokens in turn before attention does

    @property
    def has_second_road(self) -> bool:
        """Whether some attention bypasses the interface and is caught at its softmax."""
        return any(owner.road != "interface" for owner in self.owners)

    @property
    def is_fused(self) -> bool:
        """Whether the model is on `sdpa` now, with all of its parts."""
        return set(internals.implementations(self.configurations)) == {"sdpa"}

    @property
    def with_few_masks(self) -> str:
        """The attention implementation to set so that no mask is made which `sdpa` can do without.

        A model that came on another implementation keeps the masks of eager attention.
        """
        return internals.WITH_BOOLEAN_MASKS if self.is_fused else self.implementation

    @property
    def implementation(self) -> str:
        """The attention implementation to set: ours, or eager if no module uses the interface.

        Where eager is another function than the fused attention that the model came with, the
        model keeps the latter: it is spelled out where it is called.
        """
        is_fused = self.is_fused
        if any(owner.road == "interface" for owner in self.owners):
            takes = any(internals.takes_boolean_masks(owner.module) for owner in self.owners)
            return internals.WITH_BOOLEAN_MASKS if takes and is_fused else internals.IMPLEMENTATION
        differs = any(internals.eager_differs(owner.module) for owner in self.owners)
        return "sdpa" if differs and is_fused else "eager"


@dataclass(frozen=True)
class _Kept:
    """A cached anatomy that keeps no module alive, and the stamp of the modules it was found in."""

    owners: tuple[tuple[ReferenceType[nn.Module], str, str, str], ...]
    submodels: tuple[ReferenceType[nn.Module], ...]
    configurations: tuple[Any, ...]
    network: str | None
    stamp: object


_known: WeakKeyDictionary[nn.Module, _Kept] = WeakKeyDictionary()


def anatomy(model: nn.Module) -> Anatomy:
    """Return the anatomy of a model, cached: finding it takes longer than a short pass on a GPU."""
    known = known_in_use(model)
    if known is None:
        return _anatomy(model)
    if "anatomy" not in known:
        known["anatomy"] = _anatomy(model)
    found: Anatomy = known["anatomy"]
    return found


def _anatomy(model: nn.Module) -> Anatomy:
    stamp = stamp_of(model)
    kept = _known.get(model)
    found = _recall(kept) if kept is not None and kept.stamp is stamp else None
    if found is None:
        found = Anatomy(
            tuple(find_owners(model)),
            tuple(internals.submodels(model)),
            tuple(internals.configurations(model)),
            network_of(model),
        )
        _known[model] = _Kept(
            tuple((ref(each.module), each.path, each.kind, each.road) for each in found.owners),
            tuple(ref(each) for each in found.submodels),
            found.configurations,
            found.network,
            stamp,
        )
    return found


def _recall(kept: _Kept) -> Anatomy | None:
    """The cached anatomy, or None if one of its modules is gone."""
    modules = [(module(), path, kind, road) for module, path, kind, road in kept.owners]
    models = [model() for model in kept.submodels]
    if None in models or any(each[0] is None for each in modules):
        return None
    owners = tuple(Owner(m, path, kind, road) for m, path, kind, road in modules if m is not None)
    known = tuple(m for m in models if m is not None)
    return Anatomy(owners, known, kept.configurations, kept.network)


def width_of(model: nn.Module) -> int:
    """The width of a model's hidden states, as its configuration names it."""
    return getattr(model.config, "hidden_size", None) or 768
