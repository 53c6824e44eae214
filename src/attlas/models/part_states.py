"""What is known of a tensor while a model is followed token by token, and by which rules."""

from collections.abc import Callable
from dataclasses import dataclass

import torch
from torch import Tensor

Share = Callable[[Tensor, Tensor], Tensor]


@dataclass(frozen=True)
class Rules:
    """What becomes of biases and activations.

    `own` and `shared` give the share of each token in a bias, from its parts and the bias: before
    tokens have met, and after. Without `shared`, a bias is left with no token. `slope` gives the
    factor that an activation is, from what it was given and gave; without, nothing is followed
    through it. With `each_block`, every block begins anew with each token as its own.
    """

    own: Share
    shared: Share | None = None
    slope: Callable[[Tensor, Tensor], Tensor] | None = None
    each_block: bool = False


class Parts:
    """The parts of one tensor, `[part, …]`, worked out when they are first asked for."""

    def __init__(self, make: Callable[[], Tensor]) -> None:
        self._make: Callable[[], Tensor] | None = make
        self._values = torch.empty(0)

    @property
    def values(self) -> Tensor:
        """The part of each token, and behind them that of no token."""
        if self._make is not None:
            with torch.no_grad():
                self._values, self._make = self._make(), None
        return self._values


@dataclass(frozen=True)
class Constant:
    """What depends on the input and has no parts; `step` is where they ended."""

    step: str


@dataclass(frozen=True)
class Skipped:
    """What comes out of an activation that is not followed."""


State = Parts | Constant | Skipped
