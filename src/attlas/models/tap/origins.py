"""Origins: whether a hidden state belongs to the text or to the picture of an input.

The output of a module belongs to the same stream as the first tensor it gets. Following this rule
from the model's arguments through every module labels each hidden state, even though attention
soon mixes both. No names or shapes of later tensors are used.
"""

import inspect
from collections.abc import Callable, Mapping
from functools import cache
from typing import Any
from weakref import ReferenceType, ref

from torch import Tensor, nn

from attlas.models.facts.hooks import Hooks

PICTURES = ("pixel_values", "visual_feats")
TEXTS = ("input_ids",)


def takes_both(model: nn.Module) -> bool:
    """Whether the forward of a model takes both a text and a picture."""
    names = _arguments(type(model).forward)
    return bool(names & set(PICTURES)) and bool(names & set(TEXTS))


@cache
def _arguments(forward: Callable[..., Any]) -> frozenset[str]:
    return frozenset(inspect.signature(forward).parameters)


class Origins:
    """The origin of each hidden state in the current pass."""

    def __init__(self) -> None:
        self._found: dict[int, tuple[ReferenceType[Tensor], str]] = {}

    def of(self, state: Any) -> str | None:
        """`text` or `image`; None if unknown."""
        known, origin = self._found.get(id(state), (None, None))
        return origin if known is not None and known() is state else None

    def watch(self, model: nn.Module, hooks: Hooks) -> None:
        """Follow every module of the model."""
        hooks.before(model, self._begin, with_kwargs=True)
        for module in model.modules():
            if module is not model:
                hooks.after(module, self._follow, with_kwargs=True)

    def _begin(self, _: nn.Module, _args: Any, kwargs: Mapping[str, Any]) -> None:
        self._found.clear()
        for origin, names in (("image", PICTURES), ("text", TEXTS)):
            for name in names:
                self._mark(kwargs.get(name), origin)

    def _follow(
        self, _: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any], output: Any
    ) -> None:
        handed = (each for each in (*args, *kwargs.values()) if isinstance(each, Tensor))
        origin = self.of(next(handed, None))
        given = output[0] if isinstance(output, (tuple, list)) and output else output
        if origin is not None and self.of(given) is None:
            self._mark(given, origin)

    def _mark(self, state: Any, origin: str) -> None:
        if isinstance(state, Tensor):
            self._found[id(state)] = (ref(state), origin)
