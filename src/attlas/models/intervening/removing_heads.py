"""Heads taken out of the weights of a model, and what lets the smaller model be saved and loaded.

A model built from its configuration alone must know what is missing. Where the configuration can
say how many heads there are and how wide they are, it says so. Where it cannot, it is given a list
of the heads that a model built from it has yet to lose.
"""

import re
from collections.abc import Collection, Mapping
from copy import deepcopy
from typing import Any

import torch
from torch import Tensor, nn

from attlas.errors import UnsupportedModelError, UsageError
from attlas.models.decomposing.projections import are_close
from attlas.models.encoding.inputs import Inputs
from attlas.models.facts import transformers_internals as internals
from attlas.models.facts.anatomy import anatomy
from attlas.models.facts.evaluation_mode import evaluation_mode, model_lock
from attlas.models.intervening.head_projections import find_projections

RECORD = "attlas_pruned_heads"  # in a configuration: the heads to lose, by the path of a module
NOTE = "attlas_note"  # and a word to whoever opens it since the weights do not fit
TOLD = (
    "Heads are missing from these weights in a way that this configuration cannot say, so "
    "from_pretrained finds sizes that do not match: open the folder with attlas.load."
)

Removed = Mapping[str, Collection[int]]


def smaller_copy(model: nn.Module, removed: Removed) -> nn.Module:
    """A copy of a model without these heads of these modules, which knows what it has lost."""
    with model_lock(model):
        copy = deepcopy(model)
    record = _record(copy, removed)
    remove(copy, removed)
    config: Any = copy.config
    for name in (RECORD, NOTE):
        vars(config).pop(name, None)
    if record and not _say_in_configuration(copy):
        setattr(config, RECORD, record)
        setattr(config, NOTE, TOLD)
    return copy


def remove(model: nn.Module, removed: Removed) -> None:
    """Take heads out of the weights of a model, by the paths of the modules they are in."""
    _part_position_biases(model, removed)
    for path, heads in removed.items():
        find_projections(model, path).remove(heads)


def find_modules(places: Mapping[str, str], heads: Mapping[str, Collection[int]]) -> Removed:
    """Heads by site as heads by module, given the path of the module that is met at each site.

    Sites that are met in one module have its weights in common, and lose heads alike.
    """
    removed: dict[str, Collection[int]] = {}
    for path in dict.fromkeys(places.values()):
        sites = [site for site in places if places[site] == path]
        asked = {site: tuple(sorted(set(heads.get(site, ())))) for site in sites}
        if len(set(asked.values())) > 1:
            raise UsageError(
                f"{', '.join(sites)} are one set of weights: heads can be removed from all of them "
                f"alike, not {', '.join(f'{list(each)} of {site}' for site, each in asked.items())}"
            )
        if asked[sites[0]]:
            removed[path] = asked[sites[0]]
    return removed


def check_smaller(smaller: nn.Module, inputs: Inputs, expected: Tensor) -> None:
    """An error unless a model without heads gives what the whole one gave with them at zero."""
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
    """What the model gives for a batch, the first tensor of it."""
    with evaluation_mode(model), torch.no_grad(), internals.padding_known(model):
        output = model(**inputs.arguments)
    found: Tensor = next(each for each in output.values() if isinstance(each, Tensor))
    return found


def load_without_heads(model_class: Any, config: Any, place: str, **options: Any) -> Any:
    """As `from_pretrained`, with the heads in the configuration's record removed before loading."""
    plain = model_class
    if hasattr(model_class, "from_config"):  # an automatic class: which one it takes is its affair
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
    """A path as it is in the bare model, where what was saved had a head."""
    names = {name for name, _ in model.named_modules()}
    return path if path in names else path.removeprefix(f"{model.base_model_prefix}.")


def _record(model: Any, removed: Removed) -> dict[str, list[int]]:
    """All heads the model has lost, numbered as in a model that is built from its configuration."""
    record: dict[str, list[int]] = dict(getattr(model.config, RECORD, None) or {})
    for path, heads in removed.items():
        gone = record.get(path, [])
        count = find_projections(model, path).heads + len(gone)
        left = [head for head in range(count) if head not in gone]
        record[path] = sorted([*gone, *(left[head] for head in heads)])
    return record


def _say_in_configuration(model: Any) -> bool:
    """Let the configuration say how many heads are left, if a model built from it is this one.

    Whether it is, is tried: weights of the same shapes, and the same numbers in every attention.
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
    except Exception:  # whatever a family has against such a configuration, it cannot say it
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


def _part_position_biases(model: nn.Module, removed: Removed) -> None:
    """Give each layer a position bias of its own where layers that share one lose different heads.

    In T5 the first layer has a bias for each head and hands it on to the others.
    """
    stacks: dict[str, dict[str, Any]] = {}
    for path, module in model.named_modules():
        if hasattr(module, "has_relative_attention_bias"):
            stacks.setdefault(re.sub(r"\.\d+\.", ".*.", path, count=1), {})[path] = module
    for stack in stacks.values():
        if len({tuple(sorted(removed.get(path, ()))) for path in stack}) > 1:
            _part(list(stack.values()))


def _part(layers: list[Any]) -> None:
    holder = next((each for each in layers if each.has_relative_attention_bias), None)
    for layer in layers:
        if holder is not None and not layer.has_relative_attention_bias:
            layer.relative_attention_bias = deepcopy(holder.relative_attention_bias)
            layer.has_relative_attention_bias = True
        if _take_no_bias not in layer._forward_pre_hooks.values():
            layer.register_forward_pre_hook(_take_no_bias, with_kwargs=True)


def _take_no_bias(_: nn.Module, args: Any, kwargs: dict[str, Any]) -> tuple[Any, dict[str, Any]]:
    """A layer that is handed no position bias uses its own."""
    return args, {**kwargs, "position_bias": None}
