"""The only file that uses undocumented parts of transformers.

`AttentionInterface.register`, `AttentionMaskInterface.register` and `eager_mask` are documented.
Two facts are not: a configuration stores its implementation in `_attn_implementation_internal`,
and an attention module names its eager function beside `ALL_ATTENTION_FUNCTIONS`. The first is made
an attribute that depends on the context, once for the process.
"""

import inspect
from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import cache, partial
from types import FunctionType
from typing import Any

from torch import nn
from transformers import AttentionInterface, PretrainedConfig, PreTrainedModel
from transformers.masking_utils import AttentionMaskInterface, eager_mask, sdpa_mask

from attlas.restoring import here, placing

_INTERFACE = "ALL_ATTENTION_FUNCTIONS"
ATTRIBUTE = "_attn_implementation_internal"
_OTHER_SIGNS = {
    *("softmax", "Softmax", "scaled_dot_product_attention"),
    "multi_head_attention_forward",
}
_MIXES_TWICE = {"DiffLlamaAttention"}
_ADDS_ALIBI_TWICE = {"FalconAttention"}  # on eager: once in the mask and once more by itself
# It takes a mask for one of true and false; that of eager is of numbers, and hides what it shows.
_TAKES_BOOLEAN_MASKS = {"NemotronAsrStreamingEncoderAttention"}
_HEAD_COUNTS = ("num_attention_heads", "num_heads", "n_heads", "n_head", "num_attn_heads")

AttentionFunction = Callable[..., tuple[Any, Any]]
Masks = Callable[[Callable[..., Any]], Callable[..., Any]]


class StandInForEager(str):
    """A name that equals `"eager"` in comparisons but is looked up as itself.

    Some sparse families mask the keys they did not choose only if the implementation is called
    `eager` or `sdpa`. Tables of implementations still find this one by its own hash.
    """

    __slots__ = ()
    __hash__ = str.__hash__

    def __eq__(self, other: object) -> bool:
        return other == "eager" or str.__eq__(self, other)

    def __ne__(self, other: object) -> bool:
        return other != "eager" and str.__ne__(self, other)


IMPLEMENTATION = StandInForEager("attlas")
WITH_BOOLEAN_MASKS = StandInForEager("attlas_boolean")


def register(
    attend: AttentionFunction, names: Sequence[str], masks: Masks = lambda own: own
) -> None:
    """Register `attend` under two names, with the masks of eager and of sdpa, or made from them."""
    for name, mask in zip(names, (eager_mask, sdpa_mask), strict=True):
        AttentionInterface.register(str(name), attend)
        AttentionMaskInterface.register(str(name), masks(mask))


class _Chosen(dict[int, tuple[Any, str]]):
    """Configurations, by their ids, with the attention implementation they have in one context."""


class _Implementation:
    """The attribute of a configuration that names its implementation: what is chosen here, if any.

    The configuration itself is not changed: a thread that uses the model meanwhile finds its own.
    """

    def __get__(self, config: Any, kind: Any = None) -> Any:
        for each in reversed(here(_Chosen)):
            if id(config) in each:
                return each[id(config)][1]
        if config is None or ATTRIBUTE not in vars(config):
            raise AttributeError(ATTRIBUTE)
        return vars(config)[ATTRIBUTE]

    def __set__(self, config: Any, name: Any) -> None:
        vars(config)[ATTRIBUTE] = name


setattr(PretrainedConfig, ATTRIBUTE, _Implementation())


@contextmanager
def implementation(configurations: Sequence[Any], name: str) -> Iterator[None]:
    """Choose the attention implementation of these configurations, here and within the block."""
    with placing(_Chosen({id(config): (config, name) for config in configurations})):
        yield


def implementations(configurations: Sequence[Any]) -> list[str | None]:
    """The attention implementation of each of these configurations."""
    return [config._attn_implementation_internal for config in configurations]


@contextmanager
def padding_known(model: nn.Module) -> Iterator[None]:
    """Let classifiers that read the last token take a batch although they have no padding token.

    Without one they refuse more than one row, because they cannot see where each row ends. Our
    rows have equal lengths and no padding, so an id that never occurs is a valid padding token.
    """
    text = _text_config(model)
    if text is None or getattr(text, "pad_token_id", 0) is not None:
        yield
        return
    with placing() as placed:
        # Past the checks of a configuration, which take longer than a layer of a pass.
        placed.note(partial(object.__setattr__, text, "pad_token_id", None))
        object.__setattr__(text, "pad_token_id", -1)
        yield


@contextmanager
def without_cache(configurations: Sequence[Any]) -> Iterator[None]:
    """Keep a model from remembering its keys and values, also where its forward takes no such wish.

    A cache that is kept would hold the keys of a first run when a block runs a second time.
    """
    with placing() as placed:
        for config in configurations:
            if getattr(config, "use_cache", None):
                placed.note(partial(object.__setattr__, config, "use_cache", True))
                object.__setattr__(config, "use_cache", False)
        yield


def configurations(model: nn.Module) -> list[Any]:
    """Every configuration of the model and its submodules, sub-configurations included."""
    found: dict[int, Any] = {}
    waiting = [getattr(module, "config", None) for module in model.modules()]
    while waiting:
        config = waiting.pop()
        if isinstance(config, PretrainedConfig) and id(config) not in found:
            found[id(config)] = config
            waiting.extend(getattr(config, key, None) for key in config.sub_configs)
    return list(found.values())


def eager_attention(module_type: Any) -> AttentionFunction | None:
    """The eager attention function of a module class; None if it does not use the interface.

    The name is read from the code of the class. This also works for subclasses in a user's file
    and for modelling files with several eager functions.
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
    """Whether a call of the interface is more than the values mixed by the weights.

    Some families scale the mixed values by sinks that are not part of the weights: mixing the
    values again would lose the sinks. Others mix with the same weights in two calls.
    """
    names = {parent.__name__ for parent in module_type.__mro__}
    scales_after = "logsumexp" in inspect.unwrap(eager).__code__.co_names
    return scales_after or bool(names & _MIXES_TWICE)


def eager_differs(module: nn.Module) -> bool:
    """Whether a module's eager attention is another function than its fused attention."""
    names = {parent.__name__ for parent in type(module).__mro__}
    alibi = getattr(getattr(module, "config", None), "alibi", False)
    return bool(names & _ADDS_ALIBI_TWICE) and bool(alibi)


def takes_boolean_masks(module: nn.Module) -> bool:
    """Whether a module misreads the mask of eager attention, or gets another one on eager.

    Where a configuration says that attention looks both ways, sdpa looks both ways in a text that
    needs no mask, and eager is handed a causal one: so it is in PaliGemma without a picture.
    """
    both_ways = getattr(getattr(module, "config", None), "use_bidirectional_attention", None)
    named = {parent.__name__ for parent in type(module).__mro__}
    return both_ways is True or bool(named & _TAKES_BOOLEAN_MASKS)


def is_other_attention(module_type: Any) -> bool:
    """Whether this class looks like attention that does not use the interface."""
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
    """The names in the code of a function, and in that of functions from its file that it names."""
    names = set(function.__code__.co_names)
    for name in function.__code__.co_names:
        named = function.__globals__.get(name)
        helper = inspect.unwrap(named) if callable(named) else None
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
    """The model itself and every `PreTrainedModel` inside it."""
    inner = [module for module in model.modules() if isinstance(module, PreTrainedModel)]
    return inner if model in inner else [model, *inner]


def innermost_model(modules: Sequence[nn.Module]) -> nn.Module:
    """The last `PreTrainedModel` among nested modules, which come outermost first."""
    models = [module for module in modules if isinstance(module, PreTrainedModel)]
    return models[-1] if models else modules[0]


def count_heads(module: nn.Module) -> int | None:
    """The number of heads according to an attention module's own attributes."""
    found = [getattr(module, name, None) for name in _HEAD_COUNTS]
    return next((count for count in found if isinstance(count, int)), None)


def only_predicts_next(model: nn.Module) -> bool:
    """Whether a family has causal language models but no masked ones."""
    from transformers.models.auto import modeling_auto as tables

    config: Any = getattr(model, "config", None)
    kind = getattr(config, "model_type", None)
    if getattr(config, "attn_type", None) == "bi":  # XLNet attends in both directions
        return False
    causal = kind in tables.MODEL_FOR_CAUSAL_LM_MAPPING_NAMES
    return causal and kind not in tables.MODEL_FOR_MASKED_LM_MAPPING_NAMES


def longest_text(model: nn.Module) -> int | None:
    """How many tokens the text model of a composite model takes, if its configuration says so."""
    return getattr(_text_config(model), "max_position_embeddings", None)


def _text_config(model: nn.Module) -> Any:
    """The configuration of the part that reads text; the whole one if several parts do."""
    config: Any = getattr(model, "config", None)
    if not isinstance(config, PretrainedConfig):
        return None
    try:
        return config.get_text_config()
    except ValueError:  # MusicGen has a text encoder and a decoder
        return config


def takes_pixels(model: nn.Module) -> bool:
    """Whether a model's main input is a picture."""
    return getattr(model, "main_input_name", None) == "pixel_values"


def ways_in(model: nn.Module) -> list[nn.Module]:
    """The modules that turn ids or pixels into vectors: the input embeddings of all submodels."""
    named = []
    for each in submodels(model):
        try:
            named.append(each.get_input_embeddings())  # type: ignore[operator]
        except (NotImplementedError, AttributeError):  # a wrapper around submodels that have one
            continue
    weights = {id(each.weight) for each in named if isinstance(each, nn.Embedding)}
    shared = [
        module
        for module in model.modules()
        if isinstance(module, nn.Embedding) and id(module.weight) in weights
    ]
    found = {id(module): module for module in [*named, *shared] if isinstance(module, nn.Module)}
    return list(found.values())
