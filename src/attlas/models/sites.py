"""Which attention happens where: the modules that own one, and the sites they are met as."""

import inspect
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

from torch import nn

from attlas.errors import UnsupportedModelError
from attlas.models import transformers_internals as internals
from attlas.results import Site

KINDS = ("encoder", "decoder", "cross", "vision")
_OTHER_STREAM = ("key_value_states", "encoder_hidden_states", "encoder_outputs")


@dataclass(frozen=True, eq=False)
class Owner:
    """A module that owns an attention, its path in the model, and its kind when it reads itself."""

    module: nn.Module
    path: str
    kind: str
    road: str  # how its attention is met: through the "interface", or at its "softmax"

    def kind_of_call(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> str:
        """`cross` where the call hands over another stream to read, else the kind of its place."""
        if getattr(self.module, "is_cross_attention", False):
            return "cross"
        kind: Any = type(self.module)
        given = dict(zip(_parameters(kind), args, strict=False)) | dict(kwargs)
        handed = any(given.get(name) is not None for name in _OTHER_STREAM)
        return "cross" if handed else self.kind


def find_owners(model: nn.Module) -> list[Owner]:
    """The modules of the model that own an attention, or an error that says why it has none."""
    modules = dict(model.named_modules())
    roads = {path: _road(module) for path, module in modules.items()}
    owners = [
        Owner(modules[path], path, _kind_of_place(path, modules), road)
        for path, road in roads.items()
        if road is not None
    ]
    if not owners:
        raise UnsupportedModelError(
            f"{type(model).__name__} cannot be opened: none of its {len(modules)} modules owns an "
            "attention; expected at least one that goes through transformers' AttentionInterface, "
            "or an attention module with a softmax of its own"
        )
    return owners


def _road(module: nn.Module) -> str | None:
    """How a module's attention is met: through the interface, at its softmax, or not at all."""
    if isinstance(module, nn.MultiheadAttention):
        raise UnsupportedModelError(
            "torch.nn.MultiheadAttention keeps its attention to itself and cannot be opened"
        )
    if internals.eager_attention(type(module)) is not None:
        return "interface"
    return "softmax" if internals.is_other_attention(type(module)) else None


def _kind_of_place(path: str, modules: Mapping[str, nn.Module]) -> str:
    module = modules[path]
    parts = path.split(".")
    above = [modules[".".join(parts[:depth])] for depth in range(len(parts))]
    model = internals.innermost_model(above)
    if internals.takes_pixels(model) or "vision" in path:
        return "vision"
    looks_back = getattr(module, "is_causal", False) or getattr(module, "is_decoder", False)
    if looks_back or "decoder" in path:
        return "decoder"
    placed = "encoder" in path or hasattr(module, "is_causal")
    return "decoder" if not placed and internals.only_predicts_next(model) else "encoder"


@cache
def _parameters(module_type: Any) -> tuple[str, ...]:
    return tuple(inspect.signature(module_type.forward).parameters)[1:]


def find_block(model: nn.Module, path: str) -> nn.Module:
    """The block an attention module belongs to: the outermost list element above it, or itself."""
    module = model
    for part in path.split("."):
        inside_list = isinstance(module, nn.ModuleList)
        module = module.get_submodule(part)
        if inside_list:
            return module
    return module


def describe(sites: Iterable[Site]) -> str:
    """The sites in a few words: `encoder 0–5, cross 0–5`."""
    last: dict[str, int] = {}
    for site in sites:
        last[site.kind] = max(site.layer, last.get(site.kind, 0))
    return ", ".join(f"{kind} 0–{layer}" for kind, layer in last.items())
