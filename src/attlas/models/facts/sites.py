"""Where attention happens: the modules that compute it, and the kind of site each call is."""

import inspect
from collections.abc import Callable, Collection, Iterable, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any
from weakref import WeakKeyDictionary

from torch import nn

from attlas.errors import UnsupportedModelError
from attlas.models.facts import transformers_internals as internals
from attlas.models.facts.bands import has_bands
from attlas.models.facts.stages import has_stages
from attlas.results import Site

KINDS = ("encoder", "decoder", "cross", "vision", "cross_vision", "pooling")
_OTHER_STREAM = (
    "key_value_states",
    "encoder_hidden_states",
    "encoder_outputs",
    "inputs",
    "context",
    "cross_attention_states",
)
_OTHER_STREAMS = frozenset(_OTHER_STREAM)
_IS_CROSS = ("is_cross_attention", "encoder_decoder_attention")

BLOCK_LISTS = (nn.ModuleList, nn.Sequential)  # of the blocks of a stage

# Module classes whose attention cannot be shown as [batch, head, query, key], with the reason.
REFUSED = {
    "LSHSelfAttention": "it attends in chunks of hashed tokens, over several rounds",
    "MraSelfAttention": "it approximates attention by blocks at several resolutions",
    "YosoSelfAttention": "it samples by hashing instead of taking a softmax",
    "SwiftFormerEfficientAdditiveAttention": "it weighs tokens without comparing them with others",
    "NeighborhoodAttention": "it attends to neighbourhoods, in a kernel that keeps the weights",
}

# Module classes whose one softmax is over the keys of their own stream, then those of another.
MERGED = ("T5Gemma2MergedAttention",)

# Endings of the names of module classes that carry what came before along, without attention.
RECURRENT = (
    *("MambaMixer", "Mamba2Mixer", "MambaLayer", "BambaMixer", "FalconH1Mixer", "GatedDeltaNet"),
    *("ShortConv", "ShortConvolution", "Rglru", "LightningAttention"),
)

NETWORKS = (nn.RNNBase, nn.RNNCellBase)
CONVOLUTIONS = (nn.Conv1d, nn.Conv2d, nn.Conv3d)
# Module classes whose convolution computes weights that values are mixed by, not the values.
WEIGHING = ("SeparableConv1D",)  # of ConvBERT


# Modules of a user's own model that compute attention, with the kind of their site.
NAMED: WeakKeyDictionary[nn.Module, str] = WeakKeyDictionary()


@dataclass(frozen=True, eq=False)
class Owner:
    """A module that computes attention, its path in the model, and its kind as self-attention."""

    module: nn.Module
    path: str
    kind: str
    road: str  # its attention is caught at the "interface", its own "softmax", or in "pieces"

    def kind_of_call(
        self,
        args: tuple[Any, ...],
        kwargs: Mapping[str, Any],
        origin: Callable[[Any], str | None] = lambda _: None,
    ) -> str:
        """The kind of site of one call: `cross` if it reads another stream, else the module's kind.

        `origin` tells whether a hidden state belongs to the text or to the picture: attention
        within the picture is `vision`, from the picture to the text `cross_vision`.
        """
        own, handed = self.streams(args, kwargs)
        others = [other for other in handed if other is not None and other is not own]
        if origin(own) != "image":
            return "cross" if others else self.kind
        if not others:
            return "vision"
        return "cross_vision" if "text" in map(origin, others) else "cross"

    @property
    def is_merged(self) -> bool:
        """Whether one softmax of this module is over two streams: it has two sites."""
        return type(self.module).__name__ in MERGED

    def count_other_keys(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> int:
        """How many keys of another stream follow the own ones in a merged softmax."""
        _, handed = self.streams(args, kwargs)
        return int(handed[0].shape[1])

    def streams(self, args: tuple[Any, ...], kwargs: Mapping[str, Any]) -> tuple[Any, list[Any]]:
        """The hidden states that a call attends from, and the other streams passed to it."""
        kind: Any = type(self.module)
        names = _parameters(kind)
        own = args[0] if args else kwargs.get(names[0])
        handed = []
        if not _OTHER_STREAMS.isdisjoint(kwargs):
            handed = [kwargs[name] for name in _OTHER_STREAM if name in kwargs and name != names[0]]
        if len(args) > 1:
            named = zip(names[1:], args[1:], strict=False)
            handed += [value for name, value in named if name in _OTHER_STREAM]
        return own, handed


def replace_other(
    module: nn.Module,
    args: tuple[Any, ...],
    kwargs: Mapping[str, Any],
    change: Callable[[Any], Any],
) -> tuple[tuple[Any, ...], dict[str, Any]]:
    """The arguments of a call of cross-attention with another stream to read."""
    kind: Any = type(module)
    names = _parameters(kind)
    read = {name: change(value) for name, value in kwargs.items() if _is_other(name, value)}
    told = zip(names, args, strict=False)
    changed = [change(value) if _is_other(name, value) else value for name, value in told]
    return (*changed, *args[len(changed) :]), {**kwargs, **read}


def _is_other(name: str, value: Any) -> bool:
    return name in _OTHER_STREAM and value is not None


def network_of(model: nn.Module) -> str | None:
    """The recurrent network of torch that reads the tokens before attention does, if any."""
    found = (each for each in model.modules() if isinstance(each, NETWORKS))
    return next((type(each).__name__ for each in found), None)


def find_owners(model: nn.Module) -> list[Owner]:
    """The attention modules of a model; raises `UnsupportedModelError` if there are none."""
    modules = dict(model.named_modules())
    roads = {path: _road(module) for path, module in modules.items()}
    whole = tuple(f"{path}." for path, road in roads.items() if road == "pieces")
    owners = [
        Owner(modules[path], path, _kind_of_place(path, modules), road)
        for path, road in roads.items()
        if road is not None and not path.startswith(whole)
    ]
    if not owners:
        raise UnsupportedModelError(
            f"{type(model).__name__} cannot be opened: none of its {len(modules)} modules computes "
            "attention; expected at least one that uses transformers' AttentionInterface, or an "
            "attention module with its own softmax"
        )
    return owners


def _road(module: nn.Module) -> str | None:
    """Where the attention of a module is caught; None if the module computes none."""
    if module in NAMED:
        return "softmax"
    reason = REFUSED.get(type(module).__name__)
    if reason is not None:
        raise UnsupportedModelError(f"{type(module).__name__} cannot be opened: {reason}")
    if has_bands(module):
        return "pieces"
    if internals.eager_attention(type(module)) is not None:
        return "interface"
    return "softmax" if internals.is_other_attention(type(module)) else None


def _kind_of_place(path: str, modules: Mapping[str, nn.Module]) -> str:
    module = modules[path]
    if module in NAMED:
        return NAMED[module]
    if any(getattr(module, name, False) for name in _IS_CROSS):
        return "cross"
    if getattr(module, "pools_tokens", False):
        return "pooling"
    parts = path.split(".")
    above = [modules[".".join(parts[:depth])] for depth in range(len(parts))]
    model = internals.innermost_model(above)
    if getattr(module, "is_decoder", False) and "decoder" in parts:
        return "decoder"  # of a text, also where its class is said to take pixels (PP-FormulaNet)
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
    """The block of an attention module: the outermost `ModuleList` element above it, or itself.

    In a list of lists, the blocks are the elements of the inner lists; so they are where each
    element of a list is a stage with a list of its own.
    """
    staged = has_stages(model)
    lists = BLOCK_LISTS if staged else nn.ModuleList
    module, found = model, []
    for part in path.split("."):
        inside_list = isinstance(module, lists)
        module = module.get_submodule(part)
        if inside_list and not isinstance(module, lists):
            found.append(module)
    return found[-1 if staged else 0] if found else module


def find_recurrent(model: nn.Module) -> str | None:
    """The class of a module that mixes tokens in turn instead of by attention, if there is one."""
    for module in model.modules():
        name = type(module).__name__
        if name.endswith(RECURRENT) or isinstance(module, NETWORKS):
            return name
    return None


def find_convolution(blocks: Iterable[nn.Module]) -> str | None:
    """The path and class of a module in one of the blocks that mixes tokens by a kernel, if any.

    A kernel of size one mixes none.
    """
    for block in blocks:
        weighing = [
            f"{path}."
            for path, module in block.named_modules()
            if type(module).__name__ in WEIGHING
        ]
        for path, module in block.named_modules():
            mixes = isinstance(module, CONVOLUTIONS) and max(module.kernel_size) > 1
            if mixes and not path.startswith(tuple(weighing)):
                return f"the {type(module).__name__} {path} of {type(block).__name__}"
    return None


def describe(sites: Iterable[Site]) -> str:
    """The sites in a few words: `encoder 0–5, cross 0–5`."""
    last: dict[str, int] = {}
    for site in sites:
        last[site.kind] = max(site.layer, last.get(site.kind, 0))
    return ", ".join(f"{kind} 0–{layer}" for kind, layer in last.items())


def refuse_named(owners: Iterable[Owner], unmet: Collection[str]) -> None:
    """Say so if a place that the user has named is among those without a softmax."""
    for owner in owners:
        if owner.path in unmet and owner.module in NAMED:
            place = owner.path.rpartition("inner.")[2]
            raise UnsupportedModelError(
                f"{place} takes no softmax over the tokens: name the module that does"
            )
