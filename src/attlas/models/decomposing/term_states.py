"""The terms of a tensor while a model runs, and the rules by which they are computed."""

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any
from weakref import ReferenceType, ref

import torch
from torch import Tensor

from attlas.models.decomposing.terms import Terms

Share = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class DecompositionRules:
    """How biases and activations are divided into terms.

    `own` and `shared` return the share of each token in a bias, from the terms and the bias: `own`
    before tokens have been mixed, `shared` afterwards. Without `shared`, a bias belongs to no
    token. `slope` returns the factor of an activation from its input and output; without it,
    terms end at activations. With `each_block`, every block starts again with one term for each
    of its input tokens.
    """

    own: Share
    shared: Share | None = None
    slope: Callable[[Tensor, Tensor], Tensor] | None = None
    each_block: bool = False


@dataclass(frozen=True)
class Constant:
    """A tensor that depends on the input but has no terms; `step` is where they ended."""

    step: str


@dataclass(frozen=True)
class Skipped:
    """The output of an activation that terms are not followed through."""


State = Terms | Constant | Skipped


def first_constant(states: Sequence[State], name: str) -> Constant:
    """The first state without terms; a new one, ending at `name`, if there is none."""
    return next((state for state in states if isinstance(state, Constant)), Constant(name))


class SumsMet:
    """In each block, the sum of the attention and the residual: the feed-forward is added to it.

    `met` is called with the first tensor of a block, after its attention, that a skipped one is
    added to. `early` has the skipped tensors that are added before the residual is, in families
    whose feed-forward stands beside the attention.
    """

    def __init__(self) -> None:
        self.met: Callable[[Tensor], None] | None = None
        self.early: list[Tensor] = []
        self._awaited = False

    def begin(self) -> None:
        """A block begins."""
        self.early.clear()
        self._awaited = True

    def take_early(self) -> Tensor:
        """What was skipped before the residual was added."""
        found = torch.stack([each.detach() for each in self.early]).sum(dim=0)
        self.early.clear()
        return found

    def meet(self, whole: Tensor) -> None:
        """Something that is skipped is added to this tensor."""
        awaited, self._awaited = self._awaited, False
        if awaited and self.met is not None:
            self.met(whole)


class TrackedTensors:
    """The states of the tensors of a pass, forgotten when a tensor is freed."""

    def __init__(self) -> None:
        self._states: dict[int, tuple[ReferenceType[Tensor], State]] = {}
        self.precision = torch.float64  # the lowest precision of any tensor

    def state(self, tensor: Any) -> State | None:
        """The state of a tensor; None if it does not depend on the input."""
        known, state = self._states.get(id(tensor), (None, None))
        return state if known is not None and known() is tensor else None

    def note(self, result: Any, state: Any) -> None:
        """Set the state of a tensor, or of each of several; `state` may then be a list.

        Whole numbers have none: they choose (an expert, a row), and the choice is taken as it is.
        """
        if isinstance(result, Tensor):
            if not result.is_floating_point():
                return
            self.precision = lower(self.precision, result.dtype)
            number = id(result)
            self._states[number] = (ref(result, lambda _: self._states.pop(number, None)), state)
        elif isinstance(result, (tuple, list)):
            for place, each in enumerate(result):
                self.note(each, state[place] if isinstance(state, list) else state)

    def forget(self, tensor: Tensor) -> None:
        """Remove the state of a tensor."""
        self._states.pop(id(tensor), None)

    def clear(self) -> None:
        """Remove all states: steps that were never taken hold tensors, which would hold these."""
        self._states.clear()


def lower(first: torch.dtype, second: torch.dtype) -> torch.dtype:
    """The lower of two precisions."""
    return max(first, second, key=lambda each: torch.finfo(each).eps)
