"""Removing heads from the weights of a model, so that the smaller model can be saved and loaded.

A model built from its configuration must know which heads are missing. If the configuration can
express the number and width of the heads, it is changed. If not, it gets a list of the heads to
remove from a model that is built from it.
"""

import re
from collections.abc import Collection, Mapping
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn

from attlas.errors import UnsupportedModelError, UsageError
from attlas.models.decomposing.gates import are_close
from attlas.models.encoding.inputs import Inputs
from attlas.models.facts import transformers_internals as internals
from attlas.models.facts.anatomy import anatomy
from attlas.models.facts.evaluation_mode import evaluation_mode
from attlas.models.facts.model_lock import model_lock
from attlas.models.intervening.head_projections import find_projections
from attlas.models.loading.offloading import check_changeable

RECORD = "attlas_pruned_heads"  # in a configuration: the heads to remove, by module path
NOTE = "attlas_note"  # in a configuration: an explanation for whoever opens it
EXPLANATION = (
    "Heads are missing from these weights in a way that this configuration cannot express, so "
    "from_pretrained finds sizes that do not match: open the folder with attlas.load."
)

Removed = Mapping[str, Collection[int]]


def smaller_copy(model: nn.Module, removed: Removed) -> nn.Module:
    """A copy of a model without these heads, whose configuration knows that they are missing."""
    check_changeable(model, "pruning")
    with model_lock(model):
        copy = deepcopy(model)
    record = _record(copy, removed)
    remove(copy, removed)
    config: Any = copy.config
    for name in (RECORD, NOTE):
        vars(config).pop(name, None)
    if record and not _fits_in_configuration(copy):
        setattr(config, RECORD, record)
        setattr(config, NOTE, EXPLANATION)
    return copy


def remove(model: nn.Module, removed: Removed) -> None:
    """Remove heads from the weights of a model, given by the paths of their modules."""
    _separate_position_biases(model, removed)
    for path, heads in removed.items():
        find_projections(model, path).remove(heads)


def find_modules(places: Mapping[str, str], heads: Mapping[str, Collection[int]]) -> Removed:
    """Turn heads by site into heads by module path; `places` has the path of each site.

    Sites that share a module share its weights, so they must lose the same heads.
    """
    removed: dict[str, Collection[int]] = {}
    for path in dict.fromkeys(places.values()):
        sites = [site for site in places if places[site] == path]
        asked = {site: tuple(sorted(set(heads.get(site, ())))) for site in sites}
        if len(set(asked.values())) > 1:
            given = ", ".join(f"{list(each)} of {site}" for site, each in asked.items())
            raise UsageError(
                f"{', '.join(sites)} share their weights: the same heads must be removed from all "
                f"of them, not {given}"
            )
        if asked[sites[0]]:
            removed[path] = asked[sites[0]]
    return removed


def check_smaller(smaller: nn.Module, inputs: Inputs, expected: Tensor) -> None:
    """Raise unless a model without heads gives the output of the whole one with them at zero."""
    try:
        given = first_output(smaller, inputs)
    except (RuntimeError, ValueError, IndexError) as problem:
        raise UnsupportedModelError(
            f"{type(smaller).__name__} does not run without these heads ({problem}), so they "
            "cannot be removed; a with block can switch them off"
        ) from problem
    if not are_close(given, expected):
        raise UnsupportedModelError(
            f"{type(smaller).__name__} without these heads is off by "
            f"{float((given - expected).abs().max()):.2g} from the model with their attention at "
            "zero, so they cannot be removed; a with block can switch them off"
        )


def first_output(model: nn.Module, inputs: Inputs) -> Tensor:
    """The first tensor in the output of a model for a batch."""
    with evaluation_mode(model), torch.no_grad(), internals.padding_known(model):
        output = model(**inputs.of_model)
    found: Tensor = next(each for each in output.values() if isinstance(each, Tensor))
    return found


def load_without_heads(model_class: Any, config: Any, place: str, **options: Any) -> Any:
    """Like `from_pretrained`, but first removes the heads that the configuration records."""
    plain = model_class
    if hasattr(model_class, "from_config"):  # an Auto class chooses the class itself
        with torch.device("meta"):
            plain = type(model_class.from_config(config))

    class WithoutHeads(plain):  # type: ignore[misc, valid-type]
        def __init__(self, config: Any, *args: Any, **kwargs: Any) -> None:
            super().__init__(config, *args, **kwargs)
            record = {
                _path_in(self, path): heads for path, heads in getattr(config, RECORD).items()
            }
            remove(self, record)

    model, report = WithoutHeads.from_pretrained(place, **options)
    model.__class__ = plain
    return model, report


def _path_in(model: Any, path: str) -> str:
    """The path of a module in a bare model, if the saved model had a head."""
    names = {name for name, _ in model.named_modules()}
    return path if path in names else path.removeprefix(f"{model.base_model_prefix}.")


def _record(model: Any, removed: Removed) -> dict[str, list[int]]:
    """All heads that are removed, numbered as in a model built from the configuration."""
    record: dict[str, list[int]] = dict(getattr(model.config, RECORD, None) or {})
    for path, heads in removed.items():
        gone = record.get(path, [])
        count = find_projections(model, path).heads + len(gone)
        left = [head for head in range(count) if head not in gone]
        record[path] = sorted([*gone, *(left[head] for head in heads)])
    return record


def _fits_in_configuration(model: Any) -> bool:
    """Set the number of heads in the configuration, if a model built from it equals this one.

    Two models count as equal if their weights have the same shapes and their attention modules
    the same numbers.
    """
    paths = [owner.path for owner in anatomy(model).owners]
    try:
        found = [find_projections(model, path) for path in paths]
        shapes = {(each.heads, each.shared, each.width) for each in found}
        if len(shapes) > 1:
            return False
        config = deepcopy(model.config)
        _set_heads(config, *shapes.pop())
        with torch.device("meta"):
            built = type(model)(config)
    except Exception:  # the family does not accept such a configuration
        return False
    same = _shapes(built) == _shapes(model) and all(
        _numbers(built.get_submodule(path)) == _numbers(model.get_submodule(path)) for path in paths
    )
    if same:
        for each in internals.configurations(model):
            _set_heads(each, found[0].heads, found[0].shared, found[0].width)
    return same


def _set_heads(config: Any, heads: int, shared: int, width: int) -> None:
    config.num_attention_heads = heads
    config.head_dim = width
    if hasattr(config, "num_key_value_heads"):
        config.num_key_value_heads = shared


def _shapes(model: nn.Module) -> dict[str, Any]:
    return {name: tensor.shape for name, tensor in model.state_dict().items()}


def _numbers(module: nn.Module) -> dict[str, Any]:
    return {name: value for name, value in vars(module).items() if type(value) in (int, float)}


def _separate_position_biases(model: nn.Module, removed: Removed) -> None:
    """Give each layer its own position bias, if layers that share one lose different heads.

    In T5, the first layer has a bias for each head and passes it on to the other layers.
    """
    stacks: dict[str, dict[str, Any]] = {}
    for path, module in model.named_modules():
        if hasattr(module, "has_relative_attention_bias"):
            stacks.setdefault(re.sub(r"\.\d+\.", ".*.", path, count=1), {})[path] = module
    for stack in stacks.values():
        if len({tuple(sorted(removed.get(path, ()))) for path in stack}) > 1:
            _separate(list(stack.values()))


def _separate(layers: list[Any]) -> None:
    holder = next((each for each in layers if each.has_relative_attention_bias), None)
    for layer in layers:
        if holder is not None and not layer.has_relative_attention_bias:
            layer.relative_attention_bias = deepcopy(holder.relative_attention_bias)
            layer.has_relative_attention_bias = True
        if _take_no_bias not in layer._forward_pre_hooks.values():
            layer.register_forward_pre_hook(_take_no_bias, with_kwargs=True)


def _take_no_bias(_: nn.Module, args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """Drop the position bias that is passed in, so that the layer uses its own."""
    return args, {**kwargs, "position_bias": None}
