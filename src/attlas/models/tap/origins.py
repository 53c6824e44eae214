"""Whether a hidden state is of the picture or of the text, in models that are handed both.

What a module gives is of the stream of the first tensor it is handed: followed from the model's
own arguments through every module, this says of each hidden state which of the two it carries on,
though both are soon mixed in it. Nothing is read off names or shapes of what comes after.
"""

import inspect
from collections.abc import Callable, Iterator, Mapping
from typing import Any
from weakref import ReferenceType, ref

from torch import Tensor, nn
from torch.utils.hooks import RemovableHandle

PICTURES = ("pixel_values", "visual_feats")
TEXTS = ("input_ids",)


def takes_both(model: nn.Module) -> bool:
    """Whether a model's forward takes a text and a picture."""
    names = set(inspect.signature(model.forward).parameters)
    return bool(names & set(PICTURES)) and bool(names & set(TEXTS))


class Origins:
    """Which hidden states of the pass under way carry on the text, and which the picture.

    `is_open` says whether a call is ours: other threads may run the model meanwhile.
    """

    def __init__(self, is_open: Callable[[], bool]) -> None:
        self._is_open = is_open
        self._found: dict[int, tuple[ReferenceType[Tensor], str]] = {}

    def of(self, state: Any) -> str | None:
        """`text` or `image`; None where it cannot be said."""
        known, origin = self._found.get(id(state), (None, None))
        return origin if known is not None and known() is state else None

    def watch(self, model: nn.Module) -> Iterator[RemovableHandle]:
        """Hooks that follow every module of the model."""
        yield model.register_forward_pre_hook(self._begin, with_kwargs=True)
        for module in model.modules():
            if module is not model:
                yield module.register_forward_hook(self._follow, with_kwargs=True)

    def _begin(self, _: nn.Module, _args: Any, kwargs: Mapping[str, Any]) -> None:
        if self._is_open():
            self._found.clear()
            for origin, names in (("image", PICTURES), ("text", TEXTS)):
                for name in names:
                    self._mark(kwargs.get(name), origin)

    def _follow(
        self, _: nn.Module, args: tuple[Any, ...], kwargs: Mapping[str, Any], output: Any
    ) -> None:
        if not self._is_open():
            return
        handed = (each for each in (*args, *kwargs.values()) if isinstance(each, Tensor))
        origin = self.of(next(handed, None))
        given = output[0] if isinstance(output, (tuple, list)) and output else output
        if origin is not None and self.of(given) is None:
            self._mark(given, origin)

    def _mark(self, state: Any, origin: str) -> None:
        if isinstance(state, Tensor):
            self._found[id(state)] = (ref(state), origin)
