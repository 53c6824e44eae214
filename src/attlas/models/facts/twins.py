"""Twins: a copy of a model's modules with the same weights, or with others made from them.

What changes weights for a while changes those of a twin: the model itself may be used meanwhile.
"""

from collections.abc import Callable
from copy import deepcopy
from typing import Any, TypeVar

from torch import Tensor, nn

from attlas.models.facts.evaluation_mode import evaluation_mode, every_module
from attlas.models.facts.model_facts import ModelFacts
from attlas.models.loading.offloading import offloaded_modules

AnyFacts = TypeVar("AnyFacts", bound=ModelFacts)


def same(tensor: Tensor) -> Tensor:
    """The tensor itself."""
    return tensor


def twin_of(facts: AnyFacts, change: Callable[[Tensor], Tensor] = same) -> AnyFacts:
    """The same subject with a twin of its model, whose weights are what `change` makes of them.

    The twin shares the model's configuration and the hooks that others have put on it.
    """
    with evaluation_mode(facts.model):
        model = deepcopy(facts.model, _shared(facts.model, change))
    return facts.with_model(model.eval())


def _shared(model: nn.Module, change: Callable[[Tensor], Tensor]) -> dict[int, Any]:
    """What is not copied, by id, for `deepcopy`: the weights, the configurations and the hooks."""
    shared: dict[int, Any] = {}
    for module in every_module(model):
        for name, value in vars(module).items():
            if name.endswith("_hooks"):
                shared[id(value)] = value.copy() if hasattr(value, "copy") else value
            elif name == "config":
                shared[id(value)] = value
        for each in offloaded_modules([module]):
            shared[id(each.hook.weights_map)] = each.hook.weights_map
        for weight in module._parameters.values():
            if weight is not None:
                shared[id(weight)] = nn.Parameter(change(weight.detach()), requires_grad=False)
        for buffer in module._buffers.values():
            if buffer is not None:
                shared[id(buffer)] = change(buffer)
    return shared
