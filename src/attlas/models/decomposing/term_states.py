"""What is known of a tensor while a model is followed token by token, and by which rules."""

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any
from weakref import ReferenceType, ref

import torch
from torch import Tensor

Share = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class DecompositionRules:
    """What becomes of biases and activations.

    `own` and `shared` give the share of each token in a bias, from its terms and the bias: before
    tokens have met, and after. Without `shared`, a bias is left with no token. `slope` gives the
    factor that an activation is, from what it was given and gave; without, nothing is followed
    through it. With `each_block`, every block begins anew with each token as its own.
    """

    own: Share
    shared: Share | None = None
    slope: Callable[[Tensor, Tensor], Tensor] | None = None
    each_block: bool = False


class Terms:
    """The terms of one tensor, `[term, …]`, worked out when they are first asked for."""

    def __init__(self, make: Callable[[], Tensor]) -> None:
        self._make: Callable[[], Tensor] | None = make
        self._values = torch.empty(0)

    @property
    def values(self) -> Tensor:
        """The term of each token, and last the term of no token."""
        if self._make is not None:
            with torch.no_grad():
                self._values, self._make = self._make(), None
        return self._values


@dataclass(frozen=True)
class Constant:
    """What depends on the input and has no terms; `step` is where they ended."""

    step: str


@dataclass(frozen=True)
class Skipped:
    """What comes out of an activation that is not followed."""


State = Terms | Constant | Skipped


class TrackedTensors:
    """What is known of the tensors of a pass, as long as they are there."""

    def __init__(self) -> None:
        self._states: dict[int, tuple[ReferenceType[Tensor], State]] = {}
        self.precision = torch.float64  # the lowest of any of them

    def state(self, tensor: Any) -> State | None:
        """What is known of a tensor; None where it does not depend on the input."""
        known, state = self._states.get(id(tensor), (None, None))
        return state if known is not None and known() is tensor else None

    def note(self, result: Any, state: Any) -> None:
        """This is known of a tensor, or of each of several, for which there may be a list."""
        if isinstance(result, Tensor):
            if result.is_floating_point():
                self.precision = lower(self.precision, result.dtype)
            number = id(result)
            self._states[number] = (ref(result, lambda _: self._states.pop(number, None)), state)
        elif isinstance(result, (tuple, list)):
            for place, each in enumerate(result):
                self.note(each, state[place] if isinstance(state, list) else state)

    def forget(self, tensor: Tensor) -> None:
        """Nothing is known of this tensor any more."""
        self._states.pop(id(tensor), None)


def lower(first: torch.dtype, second: torch.dtype) -> torch.dtype:
    """The one of two precisions that has the larger rounding."""
    return max(first, second, key=lambda each: torch.finfo(each).eps)
