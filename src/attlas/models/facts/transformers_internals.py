"""Every name of transformers that Attlas leans on beyond its documented surface, in this one file.

`AttentionInterface.register`, `AttentionMaskInterface.register` and `eager_mask` are documented.
What is not: that a configuration keeps its implementation in `_attn_implementation_internal`, and
that an attention module names its own eager function beside `ALL_ATTENTION_FUNCTIONS`.
"""

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache
from types import FunctionType
from typing import Any

from torch import nn
from transformers import AttentionInterface, PretrainedConfig, PreTrainedModel
from transformers.masking_utils import AttentionMaskInterface, eager_mask

_INTERFACE = "ALL_ATTENTION_FUNCTIONS"
_OTHER_SIGNS = {
    "softmax",
    "Softmax",
    "scaled_dot_product_attention",
    "multi_head_attention_forward",
}
_MIXES_TWICE = {"DiffLlamaAttention"}
_HEAD_COUNTS = ("num_attention_heads", "num_heads", "n_heads", "n_head", "num_attn_heads")

AttentionFunction = Callable[..., tuple[Any, Any]]


class StandInForEager(str):
    """A name of its own that passes for `eager` where a modelling file asks by name.

    Some do: sparse families hide the keys they did not choose only where the implementation is
    called `eager` or `sdpa`. Tables of implementations still find it under its own name.
    """

    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        return other == "eager" or str.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return not self == other


IMPLEMENTATION = StandInForEager("attlas")


def register(attend: AttentionFunction) -> None:
    """Make `attend` an attention implementation, with the masks that the eager one gets."""
    AttentionInterface.register(str(IMPLEMENTATION), attend)
    AttentionMaskInterface.register(str(IMPLEMENTATION), eager_mask)


@contextmanager
def implementation(configurations: Sequence[Any], name: str) -> Iterator[None]:
    """Set the attention implementation of every one of these, and give each its own back."""
    before = [(config, config._attn_implementation_internal) for config in configurations]
    try:
        for config, _ in before:
            config._attn_implementation_internal = name
        yield
    finally:
        for config, previous in before:
            config._attn_implementation_internal = previous


def implementations(configurations: Sequence[Any]) -> list[str | None]:
    """The attention implementation of every one of these configurations."""
    return [config._attn_implementation_internal for config in configurations]


@contextmanager
def padding_known(model: nn.Module) -> Iterator[None]:
    """Let classifiers that read the last token take a batch, though they know no padding token.

    Without one they refuse more than one row, for they could not tell where each ends. Our rows
    are of equal length and all of them text: a token that never occurs says just that.
    """
    config: Any = getattr(model, "config", None)
    text = config.get_text_config() if isinstance(config, PretrainedConfig) else None
    if text is None or getattr(text, "pad_token_id", 0) is not None:
        yield
        return
    text.pad_token_id = -1
    try:
        yield
    finally:
        text.pad_token_id = None


def configurations(model: nn.Module) -> list[Any]:
    """Every configuration the model or a part of it holds, composite ones taken apart."""
    found: dict[int, Any] = {}
    waiting = [getattr(module, "config", None) for module in model.modules()]
    while waiting:
        config = waiting.pop()
        if isinstance(config, PretrainedConfig) and id(config) not in found:
            found[id(config)] = config
            waiting.extend(getattr(config, key, None) for key in config.sub_configs)
    return list(found.values())


def eager_attention(module_type: Any) -> AttentionFunction | None:
    """The eager function that this kind of attention module names itself; None off the interface.

    It is found where the module's own code mentions it, so a subclass in a user's file, and a
    modelling file with several eager functions, come out right.
    """
    return _eager_attention(module_type)


@cache
def _eager_attention(module_type: Any) -> AttentionFunction | None:
    for function in _functions(module_type):
        names = function.__code__.co_names
        eager = [name for name in names if name.endswith("eager_attention_forward")]
        if _INTERFACE in names and eager:
            found: Any = function.__globals__[eager[0]]
            return None if _is_met_at_softmax(module_type, found) else found
    return None


def _is_met_at_softmax(module_type: Any, eager: Any) -> bool:
    """Whether one call of the interface is not one attention that mixes the values.

    Some scale what they mixed, by sinks kept out of their weights: mixing the values again by other
    weights would leave that out. Some mix by the same weights in two calls.
    """
    names = {parent.__name__ for parent in module_type.__mro__}
    scales_after = "logsumexp" in inspect.unwrap(eager).__code__.co_names
    return scales_after or bool(names & _MIXES_TWICE)


def is_other_attention(module_type: Any) -> bool:
    """Whether this looks like attention that does not go through the interface."""
    return _is_other_attention(module_type)


@cache
def _is_other_attention(module_type: Any) -> bool:
    if issubclass(module_type, nn.MultiheadAttention):
        return True
    named = "attention" in module_type.__name__.lower() or "attn" in module_type.__name__.lower()
    if not named or eager_attention(module_type) is not None:
        return False
    return any(_OTHER_SIGNS & _names(function) for function in _functions(module_type))


def _names(function: FunctionType) -> set[str]:
    """The names a function mentions, and those of the functions of its own file that it names."""
    names = set(function.__code__.co_names)
    for name in function.__code__.co_names:
        helper = function.__globals__.get(name)
        if isinstance(helper, FunctionType) and helper.__module__ == function.__module__:
            names.update(helper.__code__.co_names)
    return names


def _functions(module_type: Any) -> Iterator[FunctionType]:
    for parent in module_type.__mro__:
        if parent is nn.Module:
            return
        for member in vars(parent).values():
            function = inspect.unwrap(member) if callable(member) else None
            if isinstance(function, FunctionType):
                yield function


def submodels(model: nn.Module) -> list[nn.Module]:
    """The model itself and every whole model inside it."""
    inner = [module for module in model.modules() if isinstance(module, PreTrainedModel)]
    return inner if model in inner else [model, *inner]


def innermost_model(modules: Sequence[nn.Module]) -> nn.Module:
    """The last whole model among modules that contain one another, outermost first."""
    models = [module for module in modules if isinstance(module, PreTrainedModel)]
    return models[-1] if models else modules[0]


def count_heads(module: nn.Module) -> int | None:
    """How many heads an attention module says it has."""
    found = [getattr(module, name, None) for name in _HEAD_COUNTS]
    return next((count for count in found if isinstance(count, int)), None)


def only_predicts_next(model: nn.Module) -> bool:
    """Whether a family has causal language models and no masked ones."""
    from transformers.models.auto import modeling_auto as tables

    config: Any = getattr(model, "config", None)
    kind = getattr(config, "model_type", None)
    if getattr(config, "attn_type", None) == "bi":  # XLNet looks both ways
        return False
    causal = kind in tables.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    return causal and kind not in tables.MODEL_FOR_MASKED_LM_MAPPING_NAMES


def longest_text(model: nn.Module) -> int | None:
    """How many tokens the text part of a composite model takes, where its configuration says."""
    config: Any = getattr(model, "config", None)
    text = config.get_text_config() if isinstance(config, PretrainedConfig) else None
    return getattr(text, "max_position_embeddings", None)


def takes_pixels(model: nn.Module) -> bool:
    """Whether a model's main input is a picture."""
    return getattr(model, "main_input_name", None) == "pixel_values"


def ways_in(model: nn.Module) -> list[nn.Module]:
    """The modules that turn ids or pixels into vectors: those that its parts name as their own."""
    named = []
    for part in submodels(model):
        try:
            named.append(part.get_input_embeddings())  # type: ignore[operator]
        except (NotImplementedError, AttributeError):  # a shell around the parts that have one
            continue
    weights = {id(each.weight) for each in named if isinstance(each, nn.Embedding)}
    shared = [
        module
        for module in model.modules()
        if isinstance(module, nn.Embedding) and id(module.weight) in weights
    ]
    found = {id(module): module for module in [*named, *shared] if isinstance(module, nn.Module)}
    return list(found.values())
